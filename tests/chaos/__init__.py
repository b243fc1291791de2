"""Kills, stops and cuts at random, and a comparison with the undisturbed run: `make chaos`."""
