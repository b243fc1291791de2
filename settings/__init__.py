"""Every setting: what there is (fields.py), read once from the environment (environment.py), and its page (page.py)."""

from settings.environment import CLIENT_VARIABLES, load_settings
from settings.fields import DAY, Settings

__all__ = ["CLIENT_VARIABLES", "DAY", "Settings", "load_settings"]
