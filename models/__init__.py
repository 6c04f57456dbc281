"""Closed worlds: machines and their environment, bounded, the Python twin of each module in spec/."""
