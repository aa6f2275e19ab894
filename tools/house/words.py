"""The words that are out, each with its replacement: docs/style.md has the rules.

The patterns are regular expressions for whole words, in any case. They apply to all text: names,
comments, docstrings, messages and documents.
"""

WORDS: dict[str, str] = {
    r"fleets?": "cluster",
    r"(?:what|whatever) (?:befell|befalls)|befalls?|befell|befallen": "happens, fails",
    r"who is no": "a noun: 'what is not a ...'",
    r"of which all is known": "whose settings are known",
    r"(?:come|comes|came) to together": "add up to",
    r"what (?:it|they|all|nodes|this|that) (?:come|comes|came) to": "the total, the result",
    r"goes? along|went along": "accompanies, is included",
    r"goes on|go on|went on|going on": "continue, resume",
    r"is told|are told|was told|were told|be told": "is reported, is shown",
    r"told of": "reported by",
    r"not said": "not stated",
    r"is said|are said|was said|be said": "is stated, is printed",
    r"(?:half|99 %|95 %|90 %) takes?": "p50, p99, p95, p90",
    r"mend(?:s|ed|ing)?": "fix",
    r"dearer|dearest": "more expensive",
    r"whoever|whomever": "a noun, or 'the one that'",
    r"whom": "a noun, or 'which'",
    r"somebody|someone": "a noun: the process, the user",
    r"beside": "next to, alongside, besides",
    r"of one's own|one's own": "your own",
    r"manners?": "method, way",
    r"doubts?": "warnings",
    r"heirs?": "new owners",
    r"witness(?:es)?": "surviving reader, reference implementation",
    r"handover": "export",
    r"lacks? nothing|is lacking|are lacking": "is missing",
    r"seen to": "measured to",
    r"sees? to (?:it|that|its|their|all|one)": "makes sure",
    r"lets? in": "accepts",
    r"foreseen|foresee": "expected, predicted",
    r"meanwhile": "at the same time, during that time",
    r"now and then": "periodically",
    r"by and by": "gradually",
    r"hence|thereof|therein|thereby|whereof|wherein": "so, of it, in it",
}
"""A pattern for each word that is out, and its replacement."""

ALLOWED = (
    "tonnage.fleet",
    "fleet.json",
    "fleet-",
    "How much a fleet can carry",
    "EC2 Fleet",
    "CreateFleet",
    *("fleets=", "fleets:", ".fleets", '"fleets")', '"fleet":', '("fleet"', '"fleet spread"'),
    *('"heirs"', '"beside"', '"dearer"'),
)
"""Text that may contain such a word: persisted names, seeds of draws, the motto, other products."""
