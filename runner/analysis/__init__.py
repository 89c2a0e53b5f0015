"""Statistics of a study: pure functions from records and series to figures and verdicts. Import when analysing only."""
