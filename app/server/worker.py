"""A process of gunicorn's that serves with uvicorn: `worker_class` in app/gunicorn.conf.py."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from gunicorn.arbiter import Arbiter
from uvicorn import Server
from uvicorn_worker import UvicornWorker

from app.server.body_budget import BodyBudget
from app.server.connection import Connection
from app.server.connections import Connections
from app.server.files import connections_for
from app.server.gateway import Gateway
from logs import adopt
from settings import load_settings


class Worker(UvicornWorker):
    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {
        "http": Connection,
        "loop": "uvloop",
        "interface": "asgi3",
        "lifespan": "off",
        "ws": "none",
        "server_header": False,
        "access_log": False,
    }

    async def _serve(self) -> None:
        adopt("uvicorn.error")
        settings, threads = load_settings(), self.cfg.threads
        pool = ThreadPoolExecutor(threads, thread_name_prefix="request")
        self.config.app = Gateway(self.wsgi, pool, BodyBudget(settings.max_inflight_body_bytes))
        server = Server(self.config)
        server.server_state = connections = Connections(connections_for(threads), settings.arrival_timeout)
        self._install_sigquit_handler()
        watch = asyncio.create_task(connections.watch())
        await server.serve(sockets=self.sockets)
        watch.cancel()
        pool.shutdown(wait=False, cancel_futures=True)
        if not server.started:
            sys.exit(Arbiter.WORKER_BOOT_ERROR)
