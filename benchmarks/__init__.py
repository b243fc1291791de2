"""Timings, which are printed and never asserted."""
