"""The Grafana dashboard and Prometheus' configuration ask for what is there."""

import json
import re
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from domain.metrics import OperationMetrics
from stack.process import ROOT
from tests.http.conftest import WORKER, Api

MONITORING = ROOT / "monitoring"
METRIC = re.compile(r"celerity_[a-z_]+")


def test_every_metric_of_the_dashboard_is_one_that_is_scraped(api: Api) -> None:
    session = api.session()
    api.begin(session)
    operation_id = api.sample(session)
    claim = api.store.claims.claim(operation_id, WORKER, "fence")
    assert claim and api.store.claims.finish(claim, None, OperationMetrics(sampled=1))
    families = list(text_string_to_metric_families(api.client.get("/metrics").text))
    there = {sample.name for family in families for sample in family.samples}
    # A counter that nothing has counted yet has no samples.
    there |= {f"{family.name}_total" for family in families if family.type == "counter"}
    dashboard: dict[str, Any] = json.loads((MONITORING / "grafana" / "celerity.json").read_text())
    asked = {name for panel in dashboard["panels"] for name in METRIC.findall(panel["targets"][0]["expr"])}
    assert len(asked) > 10 and asked <= there


def test_the_monitoring_services_mount_files_that_exist_and_are_on_this_host_alone() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.monitoring.yml").read_text())["services"]
    mounted = [volume.split(":")[0] for service in services.values() for volume in service.get("volumes", [])]
    files = [name for name in mounted if name.startswith("./")]
    assert len(files) == 4 and all((ROOT / name).is_file() for name in files)
    ports = [port for service in services.values() for port in service["ports"]]
    assert ports and all(port.startswith("127.0.0.1:") for port in ports)
    assert all(service["profiles"] for service in services.values())
    (job,) = yaml.safe_load((MONITORING / "prometheus.yml").read_text())["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["api:8000"]}]
