# Everything is installed into the checkout: .venv (Python packages), .cache (Apache Kafka's and Spark's jars).
# A fresh machine needs Python 3.11, a JDK 17, Maven, make and git; nothing is installed by hand.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN    := .venv/bin
MVN    ?= mvn -q -B
JVM    := .cache/jvm/libs
APACHE_TESTS := .cache/apache-tests
RELEASES := .cache/releases
SPARK_CLASSES := .cache/spark/test-classes.jsa
ARGS   ?=
# Python keeps the compiled tests: otherwise each process compiles all of them, which takes seven seconds.
PYTEST   = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
PARALLEL = --dist loadscope --no-loadscope-reorder
# A test that hangs in the C code of a client does not see its time limit, which is a signal for Python. (librdkafka 2.16 has such
# a deadlock: its issue 5476.) This limit is longer than all others; it prints the stacks and ends the worker process.
HANGS = -o faulthandler_timeout=960 -o faulthandler_exit_on_timeout=true
# An editable install compiles nothing, and where PYTHONDONTWRITEBYTECODE is set every start would compile everything.
COMPILE = $(BIN)/python -m compileall -q broker controller coordinator protocol storage testing timer

.PHONY: run test test-unit test-oracle apache-tests strangers lint bench bench-counts compiled test-compiled test-kerberos test-images soak pipeline-demo clean

run: .venv/.installed
	$(BIN)/odradek serve $(ARGS)

test: .venv/.installed-for-tests $(JVM)/kafka.jsa $(RELEASES)/.complete $(SPARK_CLASSES) $(APACHE_TESTS)/harness.jar
	$(PYTEST) $(HANGS) -n auto $(PARALLEL) -m "not soak and not kerberos and not images" tests

test-unit: .venv/.installed-for-tests
	$(PYTEST) -n logical $(PARALLEL) -m "not soak and not kerberos and not images" tests/unit/ tests/golden/ tests/documentation/ tests/test_*.py

test-oracle: .venv/.installed-for-tests $(JVM)/kafka.jsa $(SPARK_CLASSES)
	$(PYTEST) $(HANGS) -n auto $(PARALLEL) -m "oracle and not soak and not kerberos and not images" tests/conformance --target apache

# Needs a C compiler, the headers of MIT Kerberos, its KDC, and kcat, which `make test` does without.
test-kerberos: .venv/.installed-with-gssapi $(JVM)/kafka.jsa $(APACHE_TESTS)/harness.jar .cache/kerberos/.complete
	$(PYTEST) -m kerberos tests/kerberos

# Needs a Docker engine, which `docker version` reaches (DOCKER_HOST names another one), and docker compose. Where the base
# image cannot be had, root makes one like it with debootstrap.
test-images: .venv/.installed-with-testcontainers $(JVM)/.complete .cache/images/testcontainers-1/.complete .cache/images/testcontainers-2/.complete
	$(PYTEST) -m images --timeout 1800 tests/images

apache-tests: .venv/.installed-for-tests $(APACHE_TESTS)/harness.jar
	$(BIN)/python -m tests.support.apache_tests $(ARGS)

soak: .venv/.installed-for-tests $(JVM)/.complete .cache/spark/.complete $(APACHE_TESTS)/harness.jar
	$(PYTEST) -n auto $(PARALLEL) -m "hypothesis and not soak and not kerberos and not images" --hypothesis-profile random-examples --timeout 0 tests
	$(PYTEST) -m soak --timeout 0 tests

# Test suites of other projects.
strangers: .venv/.installed-for-tests $(JVM)/.complete
	$(BIN)/python -m tests.support.strangers $(ARGS)

# Clicks are validated, made into sessions and archived, and the lag of two groups becomes a page; ARGS=--help says more.
pipeline-demo: .venv/.installed-for-tests .cache/spark/.complete
	$(BIN)/python -m spark_jobs.pipeline_demo $(ARGS)

lint: .venv/.installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.installed-for-tests $(JVM)/.complete
	$(BIN)/python -m tests.benchmarks $(ARGS)

# Calls, system calls and memory of each request, beside the recorded ones; ARGS=--help says more.
bench-counts: .venv/.installed-for-tests
	$(BIN)/python -m tests.benchmarks.counts $(ARGS)

# The same source, its hot modules compiled by mypyc: a wheel in dist/compiled, and the same unpacked in build/compiled.
compiled: .venv/.installed-for-tests
	rm -rf dist/compiled build
	ODRADEK_COMPILED=1 $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist/compiled .
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/compiled dist/compiled/*.whl

# Each broker of these tests is a process of its own, which loads the compiled modules.
test-compiled: compiled $(JVM)/kafka.jsa $(RELEASES)/.complete $(SPARK_CLASSES) $(APACHE_TESTS)/harness.jar
	PYTHONPATH=$(CURDIR)/build/compiled $(BIN)/python -c 'from odradek.broker import dispatch; assert dispatch.__file__.endswith(".so")'
	PYTHONPATH=$(CURDIR)/build/compiled $(PYTEST) -n auto $(PARALLEL) -m "not soak and not kerberos and not images" tests/conformance tests/crash

clean:
	rm -rf .venv .cache build dist

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	$(COMPILE)
	touch $@

.venv/.installed-for-tests: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,spark]'
	$(COMPILE)
	touch $@ .venv/.installed

.venv/.installed-with-gssapi: .venv/.installed-for-tests
	@command -v krb5-config >/dev/null && command -v cc >/dev/null || { echo "GSSAPI needs a C compiler and the headers of MIT Kerberos: on Debian, apt-get install gcc libkrb5-dev" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[gssapi]'
	touch $@

.venv/.installed-with-testcontainers: .venv/.installed-for-tests
	@docker version >/dev/null 2>&1 || { echo "the images need a Docker engine that \`docker version\` reaches: on Debian, apt-get install docker.io docker-compose; DOCKER_HOST names another one" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[testcontainers]'
	touch $@

# Apache Kafka with its tools and ZooKeeper. The local repository is our own: a half-filled entry in a shared one breaks others.
$(JVM)/.complete: tests/support/jvm/pom.xml
	$(MVN) -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(JVM) -Dmaven.repo.local=$(CURDIR)/.cache/m2
	touch $@

# The clients of older releases: a test compares with them what `odradek.as.version` serves.
$(RELEASES)/.complete: tests/support/jvm/releases/pom.xml
	$(MVN) -f $< dependency:copy -DoutputDirectory=$(CURDIR)/$(RELEASES) -Dmaven.repo.local=$(CURDIR)/.cache/m2
	touch $@

# Their classes as a JVM maps them into memory: the hundreds of tools and brokers that the tests start take half as long.
$(JVM)/kafka.jsa: $(JVM)/.complete | .venv/.installed-for-tests
	$(BIN)/python -m tests.support.processes.apache.shared_classes

# Spark's kafka connector, by the one mechanism every job uses.
.cache/spark/.complete: spark_jobs/common/pom.xml .venv/.installed-for-tests
	$(BIN)/python -m spark_jobs.common.connector
	mkdir -p $(@D) && touch $@

# What kafka.jsa is for Apache Kafka: dozens of Spark's JVMs start while the tests run.
$(SPARK_CLASSES): .cache/spark/.complete
	$(BIN)/python -m tests.support.spark.shared_classes

# Apache Kafka's own integration tests, and what lets them run against Odradek.
$(APACHE_TESTS)/.complete: tests/support/apache_tests/jvm/pom.xml
	$(MVN) -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(APACHE_TESTS)/libs -Dmaven.repo.local=$(CURDIR)/.cache/m2
	touch $@

# The KDC of those of these tests that need one.
.cache/kerberos/.complete: tests/support/jvm/kerberos/pom.xml
	$(MVN) -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)/libs -Dmaven.repo.local=$(CURDIR)/.cache/m2
	touch $@

# The Kafka modules of two versions of testcontainers.
.cache/images/%/.complete: tests/support/images/jvm/%/pom.xml
	$(MVN) -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D) -Dmaven.repo.local=$(CURDIR)/.cache/m2
	touch $@

$(APACHE_TESTS)/harness.jar: $(APACHE_TESTS)/.complete $(wildcard tests/support/apache_tests/jvm/odradek/harness/*.java) | .venv/.installed-for-tests
	$(BIN)/python -m tests.support.apache_tests.build
