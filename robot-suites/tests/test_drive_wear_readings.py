"""What a drive states for want of a reading is not known of its wear, on the candidate as by the agent."""

from __future__ import annotations

from typing import Any

import pytest

from daq_bench.rig.on_candidate.reading import drive_wear

NVME = "nvme_smart_health_information_log"
SOUND = {"critical_warning": 0, "available_spare": 100, "available_spare_threshold": 10, "percentage_used": 3}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reads a drive whose smartctl gives this log; the kernel counts 20 sectors."""
    monkeypatch.setattr(drive_wear.disk_counters, "counters", lambda _: [20] * 20)
    monkeypatch.setattr(drive_wear, "log_page", lambda *_: b"")

    def reading_of(log: dict[str, Any]) -> dict[str, Any]:
        monkeypatch.setattr(drive_wear, "smart_document", lambda _: {NVME: log})
        return drive_wear.reading_of("nvme0n1")

    return reading_of


@pytest.mark.parametrize(
    ("key", "value"), [("available_spare", 200), ("available_spare_threshold", 255), ("percentage_used", 300)]
)
def test_a_percentage_beyond_its_range_is_not_known(read: Any, key: str, value: int) -> None:
    row = read({**SOUND, "data_units_written": 9, key: value})
    assert {name: row[name] for name in drive_wear.HEALTH if row[name] is not None} == {
        name: SOUND[name] for name in ("available_spare", "available_spare_threshold", "percentage_used") if name != key
    }
    assert row["written_bytes"] == 9 * 512_000 and row["counter"] == "nvme"


@pytest.mark.parametrize("bit", [0, 255])
def test_a_log_of_one_bit_is_no_account_of_the_drive(read: Any, bit: int) -> None:
    row = read({**dict.fromkeys(SOUND, bit), "data_units_written": bit, "nsid": -1})
    assert row["counter"] == "kernel" and row["written_bytes"] == 20 * 512
    assert all(row[name] is None for name in drive_wear.HEALTH)
