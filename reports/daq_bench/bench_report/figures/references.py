"""Published figures as reference lines: always dash-dotted, labelled "published", and attributed in the caption.

No published figure is drawn like a measurement, and only figures whose source the bundle names are drawn."""

from __future__ import annotations

from dataclasses import dataclass

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.profiles.published import PublishedDevice, PublishedFigure, of_metric
from daq_bench.bench_report.document.palette import PURPLE
from daq_bench.bench_report.reading.dataset.bundle import Bundle

DASHES = (0, (6, 2, 1, 2))
DOTS_MOST = 4


def dashes(number: int) -> tuple[int, tuple[int, ...]]:
    """Returns a dash-dotted pattern for each of several references in one figure: the first has one dot, the second two, and so on."""
    return (0, (6, 2, *((1, 2) * (1 + number % DOTS_MOST))))


COLOUR = PURPLE


@dataclass(frozen=True)
class Reference:
    """A published figure in base units with the words for its label and its caption."""

    device: PublishedDevice
    figure: PublishedFigure

    @property
    def value(self) -> float:
        return self.figure.in_base_units

    @property
    def label(self) -> str:
        """For the legend, without the value: "published: Micron X100"."""
        return f"published: {self.device.model}"

    @property
    def attribution(self) -> str:
        """Returns one sentence that names the stated figure, its origin, its conditions and its author."""
        number = in_digits(self.figure.value, 15)
        unit = {"percent": "%", "1": "times"}.get(self.figure.unit, self.figure.unit)
        stated = " ".join(part for part in (self.figure.qualifier, number, unit) if part)
        return (
            f"Published, not measured here: {self.device.model} {stated} "
            f"({self.figure.conditions}; {self.figure.source})."
        )


def measured_references(bundle: Bundle, metric: str) -> list[Reference]:
    """The published devices whose `metric` somebody measured, the largest first. Nameplates hold under conditions of their own
    and are left to comparisons that name them."""
    pairs = of_metric(bundle.published, metric)
    return [Reference(device, figure) for device, figure in pairs if figure.basis == "measured"]
