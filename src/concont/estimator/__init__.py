"""The methods with a network as a scikit-learn classifier."""
