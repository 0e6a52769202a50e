"""A redaction looks everywhere, takes out what it can, and names what is left, without the text."""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from time import thread_time

import pytest

from smp_git import Session, Store
from smp_git.model.errors import InvalidError, RefusedError
from smp_git.model.ids import parse_id
from smp_git.model.regexes import REDACTING
from tests.independent_scan import scan, unreachable
from tests.support import git, own, python, smp

SECRET = "nightingale"


def left_after(session: Session, pattern: str | re.Pattern[str] = SECRET) -> tuple[str, ...]:
    """Redact, and return what is left, which a dry run must have said before."""
    plan = session.redact(pattern, dry_run=True)
    done = session.redact(pattern)
    assert kinds(plan.left) == kinds(done.left)
    assert (plan.ids, plan.gone) == (done.ids, done.gone)
    assert plan.ways_out == done.ways_out
    assert bool(done.left) == bool(done.ways_out)
    return done.left


def kinds(left: tuple[str, ...]) -> list[str]:
    return [re.sub(r"\d+ ", "", each).rstrip("s") for each in left]


# What it takes out


def test_everything_that_a_memory_says_goes(store: Store, session: Session) -> None:
    session.add("finding", "The one that matters")
    session.add(
        "decision", f"Staff {SECRET}", rationale=f"by {SECRET}", tags=[f"team.{SECRET}", "staff"],
        title=f"Of {SECRET}", links=[(f"of_{SECRET}", "FIND-0001")],
        **own(extra={SECRET: [SECRET, {"a": f"b {SECRET}"}]}), **own(about_nightingale=1),
    )  # fmt: skip
    session.add("turn", "Hello", speaker=f"Dr. {SECRET}")
    session.add("artifact", f"A long text\n\nwith {SECRET}\n", name=f"{SECRET}.md")
    session.set_state("veritas", {"working_memory": {SECRET: f"on {SECRET}"}})
    values = session.values("langgraph")
    values.put("json", {SECRET: [f'"{SECRET}"\n', 1, None, {"a": SECRET}]})
    values.put("text", f"of {SECRET}\n")

    assert left_after(session) == ()

    assert scan(session.path, [SECRET.encode()]) == []
    memory = session.get("DEC-0001")
    assert (memory.tags, memory.links) == (("staff",), ())
    assert memory.fields["xabout__REDACTED_"] == 1
    assert memory.fields["extra"] == {"[REDACTED]": ["[REDACTED]", {"a": "b [REDACTED]"}]}
    assert [each.value for each in values.items()] == [
        {"[REDACTED]": ['"[REDACTED]"\n', 1, None, {"a": "[REDACTED]"}]},
        "of [REDACTED]\n",
    ]


def test_no_two_names_become_one(session: Session) -> None:
    """A value that another one hides would be a lost write."""
    session.add("decision", "Open", **own(extra={"n1": "a", "[REDACTED]": "b", "n2": "c"}), **own(n1_x="d"), **own(n2_x="e"))  # fmt: skip

    session.redact(re.compile("n[12]"))

    fields = session.get("DEC-0001").fields
    assert isinstance(fields["extra"], dict)
    assert sorted(map(str, fields["extra"].values())) == ["a", "b", "c"]
    assert sorted(str(value) for name, value in fields.items() if name != "extra") == ["d", "e"]


def test_numbers_and_words_with_a_meaning_go_too(session: Session) -> None:
    session.add("finding", "A pin", **own(pin=471108), severity="critical", confidence="explicit")

    assert left_after(session, "471108") == ()
    assert session.get("FIND-0001").fields["pin"] == "[REDACTED]"
    session.redact("critical")
    assert "severity" not in session.get("FIND-0001").fields


def test_what_lost_in_a_merge_goes(store: Store, session: Session) -> None:
    session.add("decision", "Open", rationale="first")
    with session.branch("aside") as aside:
        aside.edit("DEC-0001", rationale=f"by {SECRET}")
        session.edit("DEC-0001", rationale="by need")
    session.merge("aside")
    assert "contested" in session.get("DEC-0001").fields

    assert left_after(session) == ()
    assert scan(store.path, [SECRET.encode()]) == []
    assert "contested" in session.get("DEC-0001").fields


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines of it", "with \"quotes\" and \\backslashes\\", "it's a 'quoted' text", "tab\there",
        "a: colon # and hash", "línea única", "🐦 sings", "- a\n  - b", "trailing \nspace", "\u2028line",
    ],
)  # fmt: skip
def test_whatever_a_text_is_made_of_it_is_found_and_gone(store: Store, session: Session, text: str) -> None:  # fmt: skip
    session.add("decision", f"Staff {text} first", rationale=text, **own(extra={"k": [text]}))
    session.add("artifact", f"Title\n\n{text}\nend")
    (session.path / "notes.md").write_text(json.dumps({"a": text}))
    (session.path / "plain.md").write_text(text.replace("\n", "\r\n"))

    plan = session.redact(text, dry_run=True)
    assert plan.left == ("2 files that are not committed",)
    assert left_after(session, text) == ("2 files that are not committed",)

    assert text not in session.get("DEC-0001").content + session.get("ART-0001").content
    assert session.redact(text).ids == ()


@pytest.mark.parametrize("given", ["NFC", "NFD"])
@pytest.mark.parametrize("kept", ["NFC", "NFD"])
def test_composed_and_decomposed_letters_are_one_text(session: Session, given: str, kept: str) -> None:  # fmt: skip
    name = "Zoë Müller"
    session.add("decision", f"Staff {unicodedata.normalize(kept, name)} first", tags=["x"])  # type: ignore[arg-type]

    assert left_after(session, unicodedata.normalize(given, name)) == ()  # type: ignore[arg-type]
    assert session.get("DEC-0001").content == "Staff [REDACTED] first"


def test_a_pattern_keeps_its_flags(session: Session) -> None:
    session.add("decision", "Staff NightinGale\nfirst")
    session.add("decision", "K12 and \u212a")

    done = session.redact(re.compile(r"""night # a bird
        .*? ^f""", re.IGNORECASE | re.VERBOSE | re.DOTALL | re.MULTILINE), "-")  # fmt: skip
    assert done.ids == ("DEC-0001",)
    assert session.get("DEC-0001").content == "Staff -irst"
    assert session.redact(re.compile(r"\bk\d+", re.IGNORECASE | re.ASCII), "-").ids == ("DEC-0002",)


def test_an_agent_of_that_name_is_another_one_and_the_commits_are_named(session: Session) -> None:
    session.add("decision", "Open", agent=SECRET)
    session.add("finding", "It matters", agent="veritas")
    session.supersede("DEC-0001", "Closed", agent=SECRET)

    left = left_after(session)

    assert session.get("DEC-0001").agent == "redacted"
    assert left == ()


# What it names


def note(session: Session) -> None:
    session.add("finding", "A commit of its own")
    git(session.path, "notes", "add", "-m", f"about {SECRET}")


def message(session: Session) -> None:
    session.check()  # Git's own commit takes what its index has.
    git(session.path, "commit", "-q", "--allow-empty", "--no-verify", "-m", f"for {SECRET}")


def author(session: Session) -> None:
    session.check()
    git(session.path, "commit", "-q", "--allow-empty", "--no-verify", "-m", "x", f"--author={SECRET} <a@b>")  # fmt: skip


def tag(session: Session) -> None:
    session.add("finding", "A commit of its own")
    git(session.path, "tag", "-a", "v1", "-m", f"for {SECRET}")


def tag_name(session: Session) -> None:
    git(session.path, "tag", f"{SECRET}-v1")


def branch(session: Session) -> None:
    git(session.path, "branch", f"for-{SECRET}")


def other_file(session: Session) -> None:
    session.check()
    (session.path / "notes.md").write_text(f"about {SECRET}")
    git(session.path, "add", "notes.md")
    git(session.path, "commit", "-q", "--no-verify", "-m", "notes")


def file_name(session: Session) -> None:
    session.check()
    (session.path / f"{SECRET}.md").write_text("empty")
    git(session.path, "add", "-A")
    git(session.path, "commit", "-q", "--no-verify", "-m", "notes")


def loose_file(session: Session) -> None:
    (session.path / "notes.md").write_text(f"about {SECRET}")


def copy_of_a_memory(session: Session) -> None:
    (session.path / "old").mkdir()
    shutil.copy(session.file("DEC-0001"), session.path / "old" / "DEC.yaml")


def archive(session: Session) -> None:
    git(session.path, "bundle", "create", "-q", "all.bundle", "--all")


def reference(session: Session) -> None:
    git(session.path, "update-ref", f"refs/rescue/{SECRET}", "HEAD")


def remote(session: Session) -> None:
    git(session.path, "remote", "add", "origin", f"https://example.org/{SECRET}.git")


def staged(session: Session) -> None:
    session.check()
    file = session.path / "draft.md"
    file.write_text(f"about {SECRET}")
    git(session.path, "add", "draft.md")
    file.unlink()


PLACES: dict[str, Callable[[Session], None]] = {
    "a note": note,
    "the message of a commit": message,
    "the author of a commit": author,
    "the message of a tag": tag,
    "the name of a tag": tag_name,
    "the name of a branch": branch,
    "another file of history": other_file,
    "the name of a file": file_name,
    "a file that is not committed": loose_file,
    "inside a compressed file": archive,
    "the name of a reference": reference,
    "a file of .git": remote,
    "a file that is only staged": staged,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("is_held", [True, False], ids=["in a memory too", "nowhere else"])
def test_each_kind_of_place_is_named_and_the_status_says_so(store: Store, session: Session, place: str, is_held: bool) -> None:  # fmt: skip
    session.add("decision", f"Staff {SECRET}" if is_held or place.startswith("inside") else "Open")
    PLACES[place](session)

    done = smp("--root", store.path, "-s", "shop", "--json", "redact", SECRET, "--yes", check=False)

    assert done.returncode == 9, done.stderr
    found = json.loads(done.stdout)
    assert place in found["left"]
    assert SECRET not in done.stdout
    if is_held:
        assert found["receipt"]["left"] == found["left"]
        assert place in dict(session.receipt())["left"]  # type: ignore[operator]
    git(session.path, "reset", "-q")


@pytest.mark.parametrize("place", PLACES)
def test_a_dry_run_names_the_same_places(session: Session, place: str) -> None:
    session.add("decision", f"Staff {SECRET}")
    PLACES[place](session)

    assert place in left_after(session)
    git(session.path, "reset", "-q")


def test_a_copy_of_a_memory_under_another_name_is_named(session: Session) -> None:
    session.add("decision", f"Staff {SECRET}")
    copy_of_a_memory(session)

    assert left_after(session) == ("a file that is not committed",)


def test_reflogs_caches_and_what_nothing_reaches_are_named_where_nothing_goes(session: Session) -> None:  # fmt: skip
    (session.path / "draft.md").write_text(f"about {SECRET}")
    git(session.path, "add", "draft.md")
    git(session.path, "rm", "-q", "--cached", "draft.md")
    (session.path / "draft.md").unlink()

    assert left_after(session) == ("an object that no reference reaches",)
    session.add("decision", f"Staff {SECRET}")
    assert left_after(session) == ()
    assert unreachable(session.path) == []


def test_the_records_and_the_audit_log_are_looked_into(store: Store, session: Session) -> None:
    session.add("decision", "Open")
    session.delete("DEC-0001", reason=f"about {SECRET}")

    left = left_after(session)

    assert left == ("2 records and receipts of deletions", "a line of the audit log")


def test_its_own_reason_does_not_keep_the_text(store: Store, session: Session) -> None:
    session.add("decision", f"Staff {SECRET}")

    assert session.redact(SECRET, reason=f"{SECRET} left us").left == ()
    assert session.audit()[-1].reason == "[REDACTED] left us"


# What it leaves alone


@pytest.mark.parametrize("text", ["DEC-00", "FIND", "rationale", "decision", "kind"])
def test_an_id_or_a_word_of_the_format_changes_nothing(session: Session, text: str) -> None:
    session.add("decision", "Open", rationale="by need")
    session.add("finding", "It matters")
    before = session.head

    done = session.redact(text)

    assert (done.ids, done.gone, session.head) == ((), (), before)
    assert "of the format" in done.left[-1]


def test_a_text_that_begins_a_tag_a_branch_and_an_id_goes_where_it_can(session: Session) -> None:
    session.add("decision", "DEC-0001 is about main", tags=["main.part", "other"])

    done = session.redact("main")

    memory = session.get("DEC-0001")
    assert (memory.content, memory.tags) == ("DEC-0001 is about [REDACTED]", ("other",))
    assert "the name of a branch" in done.left


def test_a_persons_edit_of_the_memory_is_not_lost(session: Session) -> None:
    session.add("decision", f"Staff {SECRET}")
    file = session.file("DEC-0001")
    file.write_text(file.read_text() + "note: an hour of work\n")
    before = session.head

    for dry_run in (True, False):
        with pytest.raises(RefusedError, match="changed by hand"):
            session.redact(SECRET, dry_run=dry_run)
    assert "an hour of work" in file.read_text()
    assert session.head == before
    session.commit()
    session.redact(SECRET)
    assert session.get("DEC-0001").fields["note"] == "an hour of work"


def test_a_staged_edit_of_the_memory_is_not_lost(session: Session) -> None:
    session.add("decision", f"Staff {SECRET}")
    file = session.file("DEC-0001")
    text = file.read_text()
    file.write_text(text + "note: an hour of work\n")
    git(session.path, "add", "-A")
    file.write_text(text)

    with pytest.raises(RefusedError, match="staged by hand"):
        session.redact(SECRET)
    assert "an hour of work" in git(session.path, "show", f":{parse_id('DEC-0001').path}")
    git(session.path, "reset", "-q")


# Patterns and replacements that cannot work


def test_a_pattern_that_backtracks_ends_with_an_error_and_changes_nothing(session: Session) -> None:
    session.add("decision", "a" * 4000)
    before = session.head

    for dry_run in (True, False):
        started = thread_time()
        with pytest.raises(InvalidError, match="takes too long"):
            session.redact(re.compile("(?:a?){500}a{500}b|(a|aa)+$x"), dry_run=dry_run)
        # Of processor time it gets what the product promises, and as much again for the rest.
        assert thread_time() - started < 2 * REDACTING.seconds
    assert session.head == before
    assert session.trash() == ()


@pytest.mark.parametrize("replacement", [SECRET, f"[{SECRET} was here]"])
def test_a_replacement_that_holds_the_text_is_refused(session: Session, replacement: str) -> None:
    session.add("decision", f"Staff {SECRET}")
    before = session.head

    with pytest.raises(InvalidError, match="replacement contains"):
        session.redact(SECRET, replacement)
    assert session.head == before


def test_a_replacement_that_would_give_the_text_again_does_not(session: Session) -> None:
    session.add("decision", "qqzzz is it")

    assert session.redact("qz", "").left == ()
    assert session.get("DEC-0001").content == "z is it"


def test_a_pattern_of_bytes_or_none_is_refused(session: Session) -> None:
    with pytest.raises(InvalidError, match="not of bytes"):
        session.redact(re.compile(b"x"))  # type: ignore[arg-type]


@pytest.mark.slow
def test_two_thousand_memories_at_once(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "many")
    with store.create_session("shop", user="ada") as session:
        with session.transaction(agent="ada") as work:
            for number in range(2000):
                work.add("finding", f"about {SECRET} number {number}")
        done = session.redact(SECRET)
        assert len(done.ids) == 2000
        assert done.left == ()
        assert session.check() == ()
    assert scan(store.path, [SECRET.encode()]) == []


# After a crash

DIES = """
import os, sys
from smp_git import Store
from smp_git.remove import audit

audit.keep_receipt = lambda *_: os._exit(73)
with Store.open(sys.argv[1]).session("shop") as session:
    session.redact("xantippe", reason="a name")
"""


def test_after_a_crash_the_receipt_says_that_the_text_is_to_be_redacted_once_more(store: Store, session: Session) -> None:  # fmt: skip
    session.add("decision", "Ask xantippe about it", agent="ada")
    note = session.path / "note.txt"
    note.write_text("xantippe knows\n")
    session.close()
    assert python(DIES, store.path, check=False).returncode == 73

    def said(*arguments: str, status: int = 0) -> str:
        done = smp("--root", store.path, "-s", "shop", *arguments, check=False)
        assert (done.returncode, done.stderr) == (status, "")
        return done.stdout

    assert "Ask [REDACTED] about it" in said("list")
    told = said("receipt").splitlines()
    assert told[0] == "redacted DEC-0001"
    assert "  the versions before it cannot be restored" in told
    assert "  left: not looked for: the text of a redaction that was interrupted; redact it once more" in told  # fmt: skip
    assert said("audit").count("redact") == 1
    assert "no memory holds it\n  left: a file that is not committed" in said("redact", "xantippe", "--yes", status=9)  # fmt: skip
    note.unlink()
    assert said("redact", "xantippe", "--yes") == "no memory holds it\n"


def test_a_memory_that_plain_git_committed_last_stays_in_the_index(session: Session) -> None:
    name = session.add("decision", f"For {SECRET}", agent="a").id
    session.check()
    file = session.file(name)
    file.write_text(file.read_text() + "noted: by hand\n")
    git(session.path, "commit", "-q", "-a", "--no-verify", "-m", "by hand")
    session.redact(SECRET)
    assert session.check() == ()
    assert git(session.path, "status", "--porcelain") == ""
    assert session.get(name).fields["noted"] == "by hand"


def test_what_plain_git_took_away_and_a_redaction_brings_again_is_in_the_index(session: Session) -> None:  # fmt: skip
    name = session.add("decision", f"For {SECRET}", agent="a").id
    session.check()
    git(session.path, "rm", "-q", "-r", "replicas")
    git(session.path, "commit", "-q", "--no-verify", "-m", "tidy up")
    session.redact(SECRET)
    assert session.check() == ()
    assert git(session.path, "status", "--porcelain") == ""
    assert SECRET not in session.get(name).content
