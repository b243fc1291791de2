"""Together's API, under /together: the routes that its released SDK calls."""

from app.together.checkpoints import checkpoints
from app.together.model_resources import model_resources
from app.together.models import models
from app.together.operations import operations
from app.together.payloads import payloads
from app.together.sessions import sessions

blueprints = (models, model_resources, sessions, operations, checkpoints, payloads)
