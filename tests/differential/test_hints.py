"""The hints of `sharefs export check` cure what they are printed for."""

from __future__ import annotations

import pytest

from differential.compare import diagnoses_of, disagreement
from differential.follow import followed
from differential.grammar import exports_file
from differential.host import MAIN, WORKERS, on_hosts

# One fault in each; following its hint leaves nothing that was not there before.
FAULTS = {
    "/srv node1 (rw)": "SF101",
    "/srv": "SF102",
    "/srv 10.77.0.9/24(rw)": "SF103",
    "/srv 10.77.0.0/0(rw)": "SF104",
    "/srv 10.77(rw)": "SF105",
    "/srv node1(rw sync)": "SF106",
    "/srv node1(rw  sync no_wdelay)": "SF106",
    "/srv node1(rw ,sync)": "SF106",
    "/srv node1(rw, sync)": "SF106",
    "/srv node1(rw,\tsync ,no_wdelay )": "SF106",
    "/srv node1(rw 10.77.0.4(ro)": "SF106",
    "/srv node1(rw": "SF106",
    "/srv node1(rw)#note": "SF106",
    "/srv node1(rw),10.77.0.4(ro)": "SF106",
    "/srv node1(rw)10.77.0.4(ro)": "SF106",
    "/srv node1(rw,snyc)": "SF107",
    "/srv node1(rw,Async)": "SF107",
    "/srv node1(rw,,async)": "SF107",
    '/srv "node1(rw ,async)"': "SF107",
    "/srv 10.77.0.2,10.77.0.4(rw)": "SF112",
    "/srv [fd00:77::5](rw)": "SF113",
    "/srv 10.77.0.*(rw)": "SF114",
    "/srv node1(rw) node1(rw)": "SF115",
    "/srv node1(rw) node1.lab(ro)": "SF115",
    "/srv *(rw,no_root_squash)": "SF119",
    "/srv *(rw,no_root_squash,insecure)": "SF120",
    "/srv *(rw,sec=sys,insecure,no_root_squash,sec=krb5,secure,root_squash)": "SF120",
    "/mnt/share node1(rw)": "SF124",
    "/mnt/link node1(rw,fsid=1)": "SF142",
    "/mnt/data both.lab(rw,fsid=1)\n/mnt/share 10.77.0.4(rw,fsid=2)": "SF144",
    "/mnt/share 10.77.0.4(rw,fsid=2)\n/mnt/data both.lab(rw,fsid=1)": "SF144",
}


@pytest.mark.parametrize("text", FAULTS)
def test_5_hints_cure_one_fault(text: str) -> None:
    before = diagnoses_of(text + "\n")
    mine = [one for one in before if one["code"] == FAULTS[text]]
    assert len(mine) == 1
    after_text = followed(text + "\n", mine[0])
    assert after_text is not None
    after = diagnoses_of(after_text)
    assert [one["code"] for one in after] == [one["code"] for one in before if one is not mine[0]], after_text
    assert disagreement({MAIN: after_text.encode()}) == ""


def hints_that_lead_nowhere(first: int) -> list[str]:
    """Random files, with all hints followed one after the other."""
    wrong = []
    for number in range(first, 80, WORKERS):
        begin = text = exports_file(number).decode().replace("\r", "").replace("\0", "")
        for _ in range(60):
            # what to do about these needs eyes in such files: comments behind them, quotes, continued lines
            todo = [(one, followed(text, one)) for one in diagnoses_of(text) if one["code"] not in ("SF102", "SF115")]
            change = next((after for one, after in todo if after is not None), None)
            if change is None:
                break
            text = change
        else:
            wrong.append(f"{begin}became\n{text}with\n{[(one['code'], one['subject'], one['hint']) for one, after in todo if after]}")
    return wrong


def test_5_following_all_hints_comes_to_an_end() -> None:
    wrong = [found for part in on_hosts(hints_that_lead_nowhere) for found in part]
    assert wrong == [], f"{len(wrong)} files, the first:\n" + "\n".join(wrong[:3])
