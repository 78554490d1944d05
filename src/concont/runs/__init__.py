"""What a run is given and what it leaves: its settings and its folder."""
