"""Dates in the notations of many countries."""

import datetime

import numpy as np
import pytest

from urbe.mdp.dates import instants

DAYS = [datetime.datetime(2025, 12, 30, 8, 5), datetime.datetime(2026, 1, 3, 17, 45), datetime.datetime(2026, 2, 11)]


@pytest.mark.parametrize(
    "notation",
    [
        "%Y-%m-%d", "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y",
        "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y %I:%M %p",
    ],
)  # fmt: skip
def test_notations(notation):
    found, wrong, _ = instants([f" {day:{notation}}" for day in DAYS])
    whole = DAYS if "%M" in notation else [day.replace(hour=0, minute=0) for day in DAYS]
    assert wrong == -1
    assert found.tolist() == whole


def test_time_zones_are_taken_into_account():
    texts = ["2026-01-05T08:00:00Z", "2026-01-05T08:30:00+01:00"]
    assert instants(texts)[0].astype("datetime64[m]").astype(str).tolist() == ["2026-01-05T08:00", "2026-01-05T07:30"]
    aware = [datetime.datetime.fromisoformat(text) for text in texts]
    assert np.array_equal(instants(aware)[0], instants(texts)[0])


@pytest.mark.parametrize(
    ("texts", "at", "message"),
    [
        (["01/01/2026", "02/01/2026"], 1, "which may be 2026-01-02 or 2026-02-01, and no other value decides"),
        (["2026-01-01", "soon"], 1, "expected a number or a date such as 2026-03-31"),
        (["31.01.2026", "01/31/2026"], 1, "expected a number or a date"),
        (["2026-01-01", 5], 1, "expected a number or a date"),
    ],
)
def test_what_is_no_date_or_may_be_two_is_named(texts, at, message):
    _, wrong, said = instants(texts)
    assert wrong == at
    assert said.startswith(message)
