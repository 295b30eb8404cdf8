"""InfluxQL from typed parts. A query knows which declared fields and tags it uses, and refuses undeclared ones.

The text is what InfluxDB 1.8 and 2.x both take on /query. Variables are always written `${name:regex}`: with the format
named, every Grafana escapes a value alike, whatever its data source plugin would do by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from daq_bench.bench_dashboards.declared import Declared
from daq_bench.candidate_kit.influxql import name_in, string_in

INTERVAL = "$__interval"  # Grafana's own choice for the panel's width
RANGE = "$timeFilter"
BEGIN = "${__from}"  # of the range shown, ms since 1970 UTC
HISTORY = "history"  # retention policy (2.x: bucket DATABASE/history) that is kept for ever
SOON = "time <= now() + 1d"
SO_FAR = "time <= now()"
MINUTES = "bench_1m"  # retention policy (2.x: bucket) of one value a minute, kept when the points that it was made of are gone


def _number(number: float) -> str:
    text = f"{number:.15g}"
    return text if "." in text else f"{text}.0"


@dataclass(frozen=True)
class Expression:
    """One column. `fields` are those that it reads, `numbers` those of them that have to be numbers."""

    text: str
    fields: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    name: str = ""

    def named(self, name: str) -> Expression:
        return replace(self, name=name)

    def _with(self, operator: str, other: Expression | float) -> Expression:
        # InfluxQL knows no exponents, and a literal without a point is a whole number.
        right = other if isinstance(other, Expression) else Expression(_number(other))
        return Expression(
            f"({self.text} {operator} {right.text})",
            self.fields | right.fields,
            self.fields | right.fields,
        )

    def __sub__(self, other: Expression | float) -> Expression:
        return self._with("-", other)

    def __add__(self, other: Expression | float) -> Expression:
        return self._with("+", other)

    def __truediv__(self, other: Expression | float) -> Expression:
        """A quotient with a fraction: in a subquery InfluxQL divides whole numbers as whole numbers."""
        return (self * 1.0)._with("/", other)

    def __mul__(self, other: Expression | float) -> Expression:
        return self._with("*", other)

    def render(self) -> str:
        return f"{self.text} AS {name_in(self.name)}" if self.name else self.text


def value(name: str) -> Expression:
    """A field as stored."""
    return Expression(name_in(name), frozenset({name}))


def _call(function: str, of: Expression, *more: str, numeric: bool = True) -> Expression:
    arguments = ", ".join((of.text, *more))
    return Expression(f"{function}({arguments})", of.fields, of.fields if numeric else of.numbers)


def mean(name: str) -> Expression:
    return _call("mean", value(name))


def _of_each(function: str, name: str) -> Expression:
    """A column for each field that ends so: `*_NAME` in inventory/metrics.yml, with a drive's name for the star."""
    return Expression(f"{function}(/_{name}$/)", frozenset({f"*_{name}"}), frozenset({f"*_{name}"}))


def mean_of_each(name: str) -> Expression:
    return _of_each("mean", name)


def highest_of_each(name: str) -> Expression:
    return _of_each("max", name)


def highest(name: str) -> Expression:
    return _call("max", value(name))


def lowest(name: str) -> Expression:
    return _call("min", value(name))


def last(name: str) -> Expression:
    """The newest value, of whatever type."""
    return _call("last", value(name), numeric=False)


def count(name: str) -> Expression:
    return _call("count", value(name), numeric=False)


def texts(name: str) -> Expression:
    """Each text once that the field has."""
    return _call("distinct", value(name), numeric=False)


def most_frequent(name: str) -> Expression:
    """The value of a group that has one, beside columns of other rows."""
    return _call("mode", value(name), numeric=False)


def total(name: str) -> Expression:
    return _call("sum", value(name))


def present_as(worth: int, name: str) -> Expression:
    """`worth` where the field has any value, of whatever type: what several queries found is added up by it."""
    return Expression(f"(count({name_in(name)}) * 0.0 + {_number(worth)})", frozenset({name}))


def whole(of: Expression) -> Expression:
    """Rounded down."""
    return _call("floor", of)


def rate(of: Expression) -> Expression:
    """Growth of a counter per second; where it begins again there is none, rather than a negative one."""
    return _call("non_negative_derivative", of, "1s")


def growth(of: Expression) -> Expression:
    """Growth of a counter from one interval to the next."""
    return _call("non_negative_difference", of)


@dataclass(frozen=True)
class Condition:
    """A part of WHERE, on a tag or on a field."""

    text: str
    tag: str = ""
    field: str = ""
    variable: str = ""


def chosen(tag: str, variable: str = "") -> Condition:
    """The tag has the value, or one of the values, of the dashboard's variable (of the tag's own name, if none is given)."""
    name = variable or tag
    return Condition(f"{name_in(tag)} =~ /^${{{name}:regex}}$/", tag=tag, variable=name)


def equals(tag: str, text: str) -> Condition:
    return Condition(f"{name_in(tag)} = {string_in(text)}", tag=tag)


def differs(tag: str, text: str) -> Condition:
    return Condition(f"{name_in(tag)} != {string_in(text)}", tag=tag)


def other_than(tag: str, variable: str) -> Condition:
    """The tag has another value than the dashboard's variable."""
    return Condition(f"{name_in(tag)} !~ /^${{{variable}:regex}}$/", tag=tag, variable=variable)


def one_of(tag: str, *values: str) -> Condition:
    return Condition(f"{name_in(tag)} =~ /^({'|'.join(values)})$/", tag=tag)


def present(tag: str) -> Condition:
    """The series has this tag at all."""
    return Condition(f"{name_in(tag)} =~ /.+/", tag=tag)


def chosen_text(name: str, variable: str) -> Condition:
    """The field, a text, is one of the values of the dashboard's variable."""
    return Condition(chosen(name, variable).text, field=name, variable=variable)


def reads(name: str, *texts: str) -> Condition:
    """A field that holds one of these texts."""
    return Condition(f"{name_in(name)} =~ /^({'|'.join(texts)})$/", field=name)


def reads_other_than(name: str, text: str) -> Condition:
    """A field that holds another text."""
    return Condition(f"{name_in(name)} != {string_in(text)}", field=name)


def has_text(name: str) -> Condition:
    """Points that have the field, a text."""
    return Condition(f"{name_in(name)} =~ /./", field=name)


def above(name: str, bound: int) -> Condition:
    """A field that holds a number above `bound`; points without the field are left out."""
    return Condition(f"{name_in(name)} > {bound}", field=name)


def since(duration_s: int) -> Condition:
    """Points of the last `duration_s`, by the server's clock, and points of the next day: those of a candidate whose clock is ahead. One
    that lies years ahead would be the newest for years."""
    return Condition(f"time >= now() - {duration_s}s AND {SOON}")


def soon() -> Condition:
    """Points of whatever age, and points of the next day."""
    return Condition(SOON)


def lately(duration_s: int) -> Condition:
    """Points of the last `duration_s`, by the server's clock, and no later ones."""
    return Condition(f"time >= now() - {duration_s}s AND {SO_FAR}")


def since_begin() -> Condition:
    """Points from the begin of the range shown on, and points of the next day."""
    return Condition(f"time >= {BEGIN}ms AND {SOON}")


def so_far() -> Condition:
    """Points from the begin of the range shown until now."""
    return Condition(f"time >= {BEGIN}ms AND {SO_FAR}")


def ahead() -> Condition:
    """Points of the next day: of a clock that is ahead."""
    return Condition(f"time > now() AND {SOON}")


@dataclass(frozen=True)
class Query:
    """One SELECT. `source` is a measurement, or a query whose columns and tags are then the fields and tags, or several of them: of one
    measurement, since InfluxQL keeps series of different measurements apart."""

    source: str | Query | tuple[Query, ...]
    select: tuple[Expression, ...]
    where: tuple[Condition, ...] = ()
    by: tuple[str, ...] = ()
    every: str = ""  # INTERVAL, or a duration such as 1m; empty: one row per series
    fill: str = "none"
    policy: str = ""  # empty: the database's default
    in_range: bool = True  # False: whatever the dashboard's range is
    newest_first: bool = False
    limit: int = 0
    tags: tuple[str, ...] = field(
        default=()
    )  # tags shown as columns, beside values as stored or the one that a selector chose

    def render(self) -> str:
        columns = [*(name_in(tag) for tag in self.tags), *(column.render() for column in self.select)]
        conditions = [condition.text for condition in self.where]
        # The inner range bounds what is read, the outer one says where time intervals begin.
        conditions += [RANGE] if self.in_range else []
        groups = [*([f"time({self.every})"] if self.every else []), *(name_in(tag) for tag in self.by)]
        parts = [f"SELECT {', '.join(columns)} FROM {self._from()}"]
        parts += [f"WHERE {' AND '.join(conditions)}"] if conditions else []
        parts += [f"GROUP BY {', '.join(groups)}"] if groups else []
        parts += [f"fill({self.fill})"] if self.every else []
        parts += ["ORDER BY time DESC"] if self.newest_first else []
        parts += [f"LIMIT {self.limit}"] if self.limit else []
        return " ".join(parts)

    def _from(self) -> str:
        if isinstance(self.source, str):
            return f"{name_in(self.policy)}.{name_in(self.source)}" if self.policy else name_in(self.source)
        return ", ".join(f"({inner.render()})" for inner in self._inner)

    @property
    def _inner(self) -> tuple[Query, ...]:
        """The queries that it reads from, if it reads from queries."""
        if isinstance(self.source, str):
            return ()
        return (self.source,) if isinstance(self.source, Query) else self.source

    @property
    def variables(self) -> frozenset[str]:
        own = frozenset(one.variable for one in self.where if one.variable)
        return own.union(*(inner.variables for inner in self._inner))

    @property
    def measurement(self) -> str:
        """The measurement at the bottom."""
        return self.source if isinstance(self.source, str) else self._inner[0].measurement

    def check(self, declared: Declared, where: str) -> None:
        """Raises BenchError for a measurement, field or tag that is not declared, or of the wrong type; `where` names the query."""
        if not isinstance(self.source, str):
            for inner in self._inner:
                inner.check(declared, where)
            self._check_columns(where)
            if len({inner.measurement for inner in self._inner}) > 1:
                raise ValueError(f"{where}: InfluxQL adds nothing up across measurements")
            return
        measurement = declared.measurement(self.source, where, self.policy == MINUTES)
        measurement.require_tags((*self.by, *self.tags, *(one.tag for one in self.where if one.tag)), where)
        for name in self._fields():
            measurement.require_field(name, where, number=any(name in column.numbers for column in self.select))

    def _fields(self) -> Iterable[str]:
        yield from sorted({name for column in self.select for name in column.fields})
        yield from (one.field for one in self.where if one.field)

    def _check_columns(self, where: str) -> None:
        names = {column.name for inner in self._inner for column in inner.select}
        unknown = [name for name in self._fields() if name not in names]
        groups = [tag for tag in (*self.by, *self.tags) if any(tag not in inner.by for inner in self._inner)]
        if unknown or groups:
            raise ValueError(f"{where}: {', '.join(unknown + groups)} is no column or group of the inner query")

    def used(self) -> frozenset[tuple[str, str]]:
        """(measurement, field) of everything that is read."""
        if not isinstance(self.source, str):
            return frozenset[tuple[str, str]]().union(*(inner.used() for inner in self._inner))
        return frozenset((self.source, name) for name in self._fields())


def over_time(measurement: str, column: Expression, where: tuple[Condition, ...], *by: str, policy: str = "") -> Query:
    """A column as lines over the range shown, one for each combination of the tags `by`."""
    return Query(measurement, (column,), where, by, INTERVAL, policy=policy)


def rate_over_time(measurement: str, field: str, where: tuple[Condition, ...], *by: str) -> Query:
    """The mean rate of a counter, from each of its values to the next: a load of a second has one too."""
    each = Query(measurement, (rate(value(field)).named("rate"),), where, by)
    return Query(each, (mean("rate"),), (), by, INTERVAL)
