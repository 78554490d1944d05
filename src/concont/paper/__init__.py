"""The paper's tables: what it published, and which recipe gives each of its rows here."""
