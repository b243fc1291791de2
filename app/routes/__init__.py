"""The routes, one module per resource."""

from app.routes.checkpoints import checkpoints
from app.routes.log import logs
from app.routes.models import models
from app.routes.operations import operations
from app.routes.service import service
from app.routes.sessions import sessions
from app.routes.workers import workers

blueprints = (sessions, operations, logs, checkpoints, models, workers, service)
