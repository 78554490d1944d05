"""Candidate sets from votes: three annotators, of whom none is right all the time.

Every label that got a vote is a candidate. A classifier trained on the sets then says which of
them it is: better than the majority does, for it has seen the images.
"""

import numpy as np
from sklearn.datasets import load_digits

import concont

random = np.random.RandomState(1)
digits = load_digits()
x, truth = digits.data, digits.target
n_voted = 600  # of 1,797 images: nobody has seen the others

# Each annotator is right with a chance of 0.6 and otherwise takes any digit for it.
guesses = random.randint(0, 10, (3, n_voted))
votes = np.where(random.rand(3, n_voted) < 0.6, truth[:n_voted], guesses)  # (3, 600)

candidates = np.ones((len(x), 10), dtype=bool)  # all true: unlabelled
candidates[:n_voted] = (votes[:, :, None] == np.arange(10)).any(axis=0)

model = concont.SSPLClassifier().fit(x, candidates)

# A tie of three different votes is broken by the first annotator.
counts = (votes[:, :, None] == np.arange(10)).sum(axis=0) + 0.5 * np.eye(10)[votes[0]]
majority = (counts.argmax(axis=1) == truth[:n_voted]).mean()
resolved = (model.labels_[:n_voted] == truth[:n_voted]).mean()
unseen = (model.labels_[n_voted:] == truth[n_voted:]).mean()

print(f"right among the voted: majority {100 * majority:.1f} %, resolved {100 * resolved:.1f} %")
print(f"right among those without a vote: {100 * unseen:.1f} %")
