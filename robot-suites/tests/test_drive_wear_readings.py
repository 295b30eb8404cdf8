"""A value that a drive states for want of a reading says nothing of its wear, on the candidate as by the agent."""

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


@pytest.mark.parametrize(
    ("name", "answers", "counter", "asked"),
    [
        ("nvme0n1", [{"device": {}}, {NVME: {**SOUND, "data_units_written": 9}}], "nvme", 2),
        ("nvme0n1", [{NVME: dict.fromkeys(SOUND, 255)}, {NVME: {**SOUND, "data_units_written": 9}}], "nvme", 2),
        ("nvme0n1", [{"device": {}}, {"device": {}}], "kernel", 2),
        ("nvme0n1", [{}], "kernel", 1),  # no tool, or no answer in time: no second wait
        ("vda", [{"device": {}}], "kernel", 1),
    ],
)
def test_a_log_that_fails_once_is_asked_for_again(
    read: Any, monkeypatch: pytest.MonkeyPatch, name: str, answers: list[dict[str, Any]], counter: str, asked: int
) -> None:
    left = list(answers)
    monkeypatch.setattr(drive_wear, "smart_document", lambda _: left.pop(0))
    assert drive_wear.reading_of(name)["counter"] == counter
    assert len(answers) - len(left) == asked


SAS: dict[str, Any] = {
    "device": {"protocol": "SCSI"},
    "scsi_percentage_used_endurance_indicator": 11,
    "scsi_error_counter_log": {"read": {"total_uncorrected_errors": 2}, "write": {"total_uncorrected_errors": 1}},
}


@pytest.mark.parametrize(
    ("left_out", "percentage", "errors"),
    [
        ((), 11, 3),
        (("scsi_percentage_used_endurance_indicator",), None, 3),
        (("scsi_error_counter_log",), 11, None),
    ],
)
def test_a_sas_drive_tells_its_wear_and_its_errors(
    read: Any, monkeypatch: pytest.MonkeyPatch, left_out: tuple[str, ...], percentage: int | None, errors: int | None
) -> None:
    """It has no health log of NVMe's: without this no set of such drives could pass the wear experiment."""
    document = {key: value for key, value in SAS.items() if key not in left_out}
    monkeypatch.setattr(drive_wear, "smart_document", lambda _: document)
    row = drive_wear.reading_of("sda")
    assert (row["percentage_used"], row["media_errors"], row["available_spare"]) == (percentage, errors, None)
    assert row["counter"] == "kernel" and row["written_bytes"] == 20 * 512


# Starosdev/scrutiny, webapp/backend/pkg/models/testdata/smart-ata-full.json: a Samsung 860 EVO, smartctl 7.0
STATISTICS = {(1, 24): 64_777_770_148, (4, 8): 0, (7, 8): 19}


@pytest.mark.parametrize(
    ("change", "block", "counter", "written"),
    [
        ({}, 512, "ata", 33_166_218_315_776),
        ({}, 4096, "ata", 64_777_770_148 * 4096),
        ({}, None, "kernel", 20 * 512),
        ({(1, 24): None}, 512, "kernel", 20 * 512),
        ({(1, 24): 0}, 512, "kernel", 20 * 512),
        ({(1, 24): -1}, 512, "kernel", 20 * 512),
        ({(1, 24): 2**63}, 512, "kernel", 20 * 512),
    ],
)
def test_a_sata_drive_counts_in_its_device_statistics(
    read: Any, monkeypatch: pytest.MonkeyPatch, change: dict[Any, Any], block: int | None, counter: str, written: int
) -> None:
    """Without this no set of SATA SSDs could pass the wear experiment."""
    rows = [
        {"number": page, "table": [{"offset": at, "value": value, "flags": {"valid": True}}]}
        for (page, at), value in {**STATISTICS, **change}.items()
    ]
    document = {
        "device": {"protocol": "ATA"},
        "logical_block_size": block,
        "power_cycle_count": 104,
        "ata_device_statistics": {"pages": rows},
    }
    monkeypatch.setattr(drive_wear, "smart_document", lambda _: document)
    row = drive_wear.reading_of("sda")
    assert (row["counter"], row["written_bytes"]) == (counter, written)
    told = [row[name] for name in ("step_bytes", "percentage_used", "media_errors", "power_cycles")]
    assert told == [block if counter == "ata" else 512, 19, 0, 104]


@pytest.mark.parametrize("told", [{"read": {"total_uncorrected_errors": 2}}, {"read": 3, "write": 4}, []])
def test_half_an_error_log_is_no_count(monkeypatch: pytest.MonkeyPatch, read: Any, told: Any) -> None:
    monkeypatch.setattr(drive_wear, "smart_document", lambda _: {**SAS, "scsi_error_counter_log": told})
    assert drive_wear.reading_of("sda")["media_errors"] is None


def test_a_sas_drives_wear_of_no_number_is_named_and_costs_nothing_else(
    monkeypatch: pytest.MonkeyPatch, read: Any
) -> None:
    document = {**SAS, "serial_number": "S1", "scsi_percentage_used_endurance_indicator": "eleven"}
    monkeypatch.setattr(drive_wear, "smart_document", lambda _: document)
    row = drive_wear.reading_of("sda")
    assert (row["percentage_used"], row["media_errors"], row["written_bytes"]) == (None, 3, 20 * 512)
    assert row["faults"] == ["sda (serial S1): percentage_used is 'eleven', which is no credible count"]


NONSENSE: list[Any] = ["x", "", -1, True, 1e300, 2**70, [], [None], {"n": "x"}, {"n": {}}]


@pytest.mark.parametrize("value", NONSENSE)
@pytest.mark.parametrize("key", [*drive_wear.HEALTH, "data_units_written"])
def test_one_drives_nonsense_costs_that_value_of_that_drive_alone(
    monkeypatch: pytest.MonkeyPatch, read: Any, key: str, value: Any
) -> None:
    """All drives of a target are read at once: an array of 24 was not measured at all for one bad page."""
    log = {**SOUND, "media_errors": 0, "power_cycles": 5, "unsafe_shutdowns": 1, "data_units_written": 9}
    documents = {"nvme0n1": {NVME: log}, "nvme1n1": {"serial_number": "S2", NVME: {**log, key: value}}}
    monkeypatch.setattr(drive_wear, "smart_document", documents.__getitem__)
    sound, bad = drive_wear.main([*documents])["result"]["drives"]
    assert sound["written_bytes"] == 9 * 512_000 and "faults" not in sound
    (fault,) = bad.pop("faults")
    assert fault.startswith(f"nvme1n1 (serial S2): {key} is ")
    lost = {"counter", "written_bytes", "step_bytes"} if key == "data_units_written" else {key}
    assert {name for name in bad if bad[name] != sound[name]} == {"name", *lost}
    assert bad.get(key) is None


@pytest.mark.parametrize(
    ("told", "counter", "written", "step"),
    [
        ("123.456", "scsi", 123_456_000_000, 10**6),
        ("123,456", "scsi", 123_456_000_000, 10**6),  # a decimal comma: henrygd/beszel, agent/test-data/smart/scsi.json
        ("0.000", "kernel", 20 * 512, 512),
        ("123", "kernel", 20 * 512, 512),
        (None, "kernel", 20 * 512, 512),
    ],
)
def test_a_sas_drive_counts_what_was_written_to_it(
    read: Any, monkeypatch: pytest.MonkeyPatch, told: str | None, counter: str, written: int, step: int
) -> None:
    log = {"write": {"gigabytes_processed": told}}
    monkeypatch.setattr(drive_wear, "smart_document", lambda _: {**SAS, "scsi_error_counter_log": log})
    row = drive_wear.reading_of("sda")
    assert (row["counter"], row["written_bytes"], row["step_bytes"]) == (counter, written, step)
    monkeypatch.setattr(drive_wear, "smart_document", lambda _: {"scsi_error_counter_log": log})
    assert drive_wear.reading_of("sda")["counter"] == "kernel"
