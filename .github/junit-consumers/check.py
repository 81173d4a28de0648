"""Parses each file as EnricoMi/publish-unit-test-result-action does
(python/publish/junit.py): with junitparser on lxml."""

import sys
from pathlib import Path

import lxml.etree
from junitparser import Error, Failure, JUnitXml, Skipped

for path in map(Path, sys.argv[1:]):
    lxml.etree.parse(path)  # libxml2 without leniency
    xml = JUnitXml.fromfile(str(path), parse_func=lambda p: lxml.etree.parse(p, parser=lxml.etree.XMLParser(huge_tree=True)))
    count = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    seen = set()
    for suite in xml:
        assert suite.name and suite.time is not None, f"{path}: a suite without name or time"
        for case in suite:
            key = (case._elem.get("file"), case.classname, case.name)
            assert all(key) and key not in seen, f"{path}: {key} has an empty part or came twice"
            seen.add(key)
            assert int(case._elem.get("line")) >= 1 and case.time is not None, f"{path}: {key}"
            count["tests"] += 1
            kinds = {type(r) for r in case.result}
            assert len(kinds) <= 1, f"{path}: {key} has several outcomes"
            for kind, what in ((Failure, "failures"), (Error, "errors"), (Skipped, "skipped")):
                count[what] += kind in kinds
            for result in case.result:
                assert result.message, f"{path}: {key} has no message"
    for what, n in count.items():
        said = getattr(xml, what)
        assert n == said, f"{path}: junitparser counts {n} {what}, the file says {said}"
    bad = count["failures"] + count["errors"]
    assert count["tests"] and (path.stem in ("green", "pass.junit")) == (bad == 0), f"{path}: {count}"
    print(f"{path.stem}: junitparser {count}")
