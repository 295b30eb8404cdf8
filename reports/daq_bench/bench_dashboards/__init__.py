"""Grafana dashboards as code: typed panels and InfluxQL, checked against inventory/metrics.yml, written as JSON."""
