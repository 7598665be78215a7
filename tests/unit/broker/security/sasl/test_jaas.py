from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.broker.security.sasl.jaas import parse_jaas_config
from odradek.storage.config.config_def import ConfigError

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{MODULE} required;", {}),
        (f"{MODULE} REQUIRED username=alice password=a-b_c.d$1 ;", {"username": "alice", "password": "a-b_c.d$1"}),
        (f"""{MODULE} Optional a="x=1;, 'y'" b='say "hi"';""", {"a": "x=1;, 'y'", "b": 'say "hi"'}),
        (rf'{MODULE} sufficient a="quote \" back \\ \101\60 \t";', {"a": 'quote " back \\ A0 \t'}),
        (f"{MODULE} /* a\n=b; */ requisite // to the end =\n a=b / rest = ;\n;", {"a": "b"}),
        (f'{MODULE}\n  required\n  user_alice="secret"\n;\n', {"user_alice": "secret"}),
        (f'{MODULE} required a="never closed\n b=c;', {"a": "never closed", "b": "c"}),
        (f'{MODULE} required ünï="é";', {"ünï": "é"}),
        (f"{MODULE} required a=b a=c;", {"a": "c"}),
    ],
)
def test_entries_are_read_as_java_reads_them(text: str, options: dict[str, str]) -> None:
    entry = parse_jaas_config(text)
    assert (entry.login_module, dict(entry.options)) == (MODULE, options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Login module not specified in JAAS config"),
        (MODULE, "Login module control flag not specified in JAAS config"),
        (f"{MODULE} ;", "Login module control flag is not available in the JAAS config"),
        (f"{MODULE} perhaps;", "Invalid login module control flag 'perhaps' in JAAS config"),
        (f"{MODULE} required", "JAAS config entry not terminated by semi-colon"),
        (f"{MODULE} required a=b", "JAAS config entry not terminated by semi-colon"),
        (f"{MODULE} required a=;", "Value not specified for key 'a' in JAAS config"),
        (f"{MODULE} required a=12;", "Value not specified for key 'a' in JAAS config"),
        (f"{MODULE} required a=-x;", "Value not specified for key 'a' in JAAS config"),
        (f"{MODULE} required password=my secret;", "Value not specified for a key in JAAS config"),
        (f"{MODULE} required; {MODULE} required;", "JAAS config property contains 2 login modules, should be 1 module"),
        (
            "com.sun.security.auth.module.JndiLoginModule required;",
            "com.sun.security.auth.module.JndiLoginModule is not allowed. Update System property "
            "'org.apache.kafka.disallowed.login.modules' to allow com.sun.security.auth.module.JndiLoginModule",
        ),
    ],
)
def test_invalid_entries_are_refused_with_kafkas_words(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_jaas_config(text)
    assert str(error.value) == message


@given(st.text())
@example('a required b="\\')
@example("a required /*")
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        entry = parse_jaas_config(text)
    except ConfigError:
        return
    assert entry.login_module


PLAIN_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"\\\n\r'))


@given(st.dictionaries(st.from_regex(r"\A[a-z][a-z0-9_.-]*\Z"), PLAIN_TEXT))
def test_what_is_quoted_is_read_as_it_was_written(options: dict[str, str]) -> None:
    text = " ".join(f'{name}="{value}"' for name, value in options.items())
    assert dict(parse_jaas_config(f"{MODULE} required {text};").options) == options
