"""What charts are about: subjects, the things they compare, sources. Word lists of our own; the numbers are invented.

A `Subject` says what is measured, of which things, over which axis, in which units and at which magnitudes.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Quantity = Literal["money", "count", "amount", "percent", "rate", "signed"]


@dataclass(frozen=True, kw_only=True)
class Things:
    """A kind of thing that can stand on a category axis or be a series."""

    singular: str
    plural: str
    preposition: Literal["in", "for"]
    names: tuple[str, ...]
    ordered: bool = False  # taken in this order, side by side


@dataclass(frozen=True, kw_only=True)
class Subject:
    """`measure` is written as in the middle of a sentence: `the {measure} in Norway in 2015`."""

    measure: str
    quantity: Quantity
    units: tuple[str, ...]  # one is drawn; "" where the measure says it all
    things: tuple[str, ...]  # keys of THINGS
    low: int = -3  # decades between which its numbers lie
    high: int = 9
    groups: tuple[str, ...] = ()  # keys of THINGS that can be series beside `things`


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split("|"))


THINGS = {
    "country": Things(
        singular="country",
        plural="countries",
        preposition="in",
        names=_words(
            "Norway|Kenya|Peru|Japan|Italy|Chile|Ghana|Canada|Latvia|Nepal|Greece|Vietnam|Ireland|Morocco|Brazil|Finland|Turkey|"
            "Mexico|Poland|Senegal|Iceland|Thailand|Portugal|Zambia|Austria|Jordan|Estonia|Fiji|Croatia|Uruguay|South Korea|"
            "New Zealand|Costa Rica|Sri Lanka|Saudi Arabia|Papua New Guinea|Bosnia and Herzegovina"
        ),
    ),
    "city": Things(
        singular="city",
        plural="cities",
        preposition="in",
        names=_words(
            "Oslo|Lima|Nairobi|Kyoto|Porto|Leeds|Boston|Dakar|Hanoi|Turin|Quito|Perth|Riga|Accra|Seville|Denver|Busan|Gdansk|"
            "Ottawa|Malmo|Cork|Izmir|Graz|Medellin|Cape Town|Salt Lake City|Buenos Aires|San Sebastian"
        ),
    ),
    "region": Things(
        singular="region",
        plural="regions",
        preposition="in",
        names=_words(
            "Asia|Europe|Africa|North America|South America|Oceania|Central America|Western Asia|Southeast Asia|Northern Europe|Southern Africa"
        ),
    ),
    "company": Things(
        singular="company",
        plural="companies",
        preposition="for",
        names=_words(
            "Aldermoor|Brightwell|Corvane|Dunmere|Eastvale|Fernlock|Graystone|Halcyra|Ironbridge|Juniver|Kestrel & Co|Lumenor|Marlowe|"
            "Northgate|Orinda|Pellworth|Quillon|Redhaven|Solvane|Tamarin|Umbrio|Vantis|Westmark|Yarrow Foods|Zephyrline|"
            "Bluewater Logistics|Hartmann Engineering Group"
        ),
    ),
    "age": Things(
        singular="age group",
        plural="age groups",
        preposition="for",
        ordered=True,
        names=_words("Under 18|18 to 24|25 to 34|35 to 44|45 to 54|55 to 64|65 to 74|75 and older"),
    ),
    "energy": Things(
        singular="source",
        plural="sources",
        preposition="for",
        names=_words("Coal|Gas|Oil|Wind|Solar|Hydro|Nuclear|Biomass|Geothermal|Tidal"),
    ),
    "sector": Things(
        singular="sector",
        plural="sectors",
        preposition="for",
        names=_words(
            "Farming|Mining|Transport|Retail|Health|Education|Finance|Tourism|Building|Textiles|Chemicals|Fishing|Media|Energy|"
            "Food processing|Public administration|Arts and entertainment|Accommodation and food services"
        ),
    ),
    "food": Things(
        singular="product",
        plural="products",
        preposition="for",
        names=_words(
            "Rice|Wheat|Maize|Apples|Bananas|Tea|Coffee|Cocoa|Milk|Cheese|Butter|Eggs|Honey|Beef|Poultry|Potatoes|Tomatoes|Onions|"
            "Olive oil|Oranges|Soy beans|Sugar beet|Frozen vegetables|Ready-made meals"
        ),
    ),
    "opinion": Things(
        singular="answer",
        plural="answers",
        preposition="for",
        names=_words(
            "Very satisfied|Rather satisfied|Undecided|Rather dissatisfied|Very dissatisfied|Don't know|Never thought about it"
        ),
        ordered=True,
    ),
    "device": Things(
        singular="device",
        plural="devices",
        preposition="for",
        names=_words(
            "Phone|Tablet|Laptop|Desktop|Smart TV|Console|Smart watch|E-reader|Radio|Printer|Digital camera|Smart speaker"
        ),
    ),
    "mode": Things(
        singular="mode of transport",
        plural="modes of transport",
        preposition="for",
        names=_words("Car|Bus|Tram|Train|Bicycle|On foot|Ferry|Motorcycle|Taxi|Metro|Electric scooter|Long-distance coach"),
    ),
    "sport": Things(
        singular="sport",
        plural="sports",
        preposition="for",
        names=_words(
            "Football|Tennis|Rowing|Judo|Cycling|Hockey|Golf|Boxing|Sailing|Fencing|Handball|Swimming|Athletics|Table tennis|"
            "Cross-country skiing|Wheelchair basketball"
        ),
    ),
    "genre": Things(
        singular="genre",
        plural="genres",
        preposition="for",
        names=_words(
            "Drama|Comedy|Crime|Poetry|Travel|History|Science|Fantasy|Romance|Horror|Biography|Cooking|Comics|Children's books|"
            "Science fiction|Politics and society"
        ),
    ),
    "material": Things(
        singular="material",
        plural="materials",
        preposition="for",
        names=_words("Glass|Paper|Steel|Copper|Plastic|Wood|Cotton|Aluminium|Rubber|Concrete|Wool|Lead|Zinc|Mixed packaging"),
    ),
    "sample": Things(
        singular="sample",
        plural="samples",
        preposition="for",
        ordered=True,
        names=tuple(f"Sample {k}" for k in range(21, 45)),
    ),
    "gender": Things(singular="gender", plural="genders", preposition="for", names=_words("Women|Men"), ordered=True),
    "area": Things(
        singular="kind of area",
        plural="kinds of area",
        preposition="in",
        names=_words("Large cities|Towns|Rural areas"),
        ordered=True,
    ),
    "channel": Things(
        singular="channel",
        plural="channels",
        preposition="for",
        names=_words("Online shops|Own shops|Telephone sales|Wholesale"),
        ordered=True,
    ),
    "level": Things(
        singular="level",
        plural="levels",
        preposition="for",
        names=_words("Primary school|Secondary school|Vocational|University"),
        ordered=True,
    ),
}

PLACES = ("country", "city", "region")  # one does not lie in another here, so no table is of two of these

_MONEY = ("US dollars", "euros", "pounds")
SUBJECTS = (
    Subject(
        measure="revenue", quantity="money", units=_MONEY, things=("company", "sector", "food", "sport"), groups=("channel", "country")
    ),
    Subject(measure="advertising spending", quantity="money", units=_MONEY, things=("company", "country", "sector"), groups=("device",)),
    Subject(measure="value of exports", quantity="money", units=_MONEY, things=("country", "food", "material", "sector"), groups=("region",)),
    Subject(measure="average price", quantity="money", units=_MONEY, things=("food", "material", "device", "city"), high=5, groups=("city",)),
    Subject(measure="average monthly rent", quantity="money", units=_MONEY, things=("city", "country"), low=1, high=5),
    Subject(measure="research budget", quantity="money", units=_MONEY, things=("company", "country", "sector")),
    Subject(measure="number of visitors", quantity="count", units=("",), things=("city", "country", "region"), low=1, groups=("age",)),
    Subject(measure="number of employees", quantity="count", units=("",), things=("company", "sector", "country"), low=1, groups=("gender",)),
    Subject(measure="number of students", quantity="count", units=("",), things=("country", "city"), low=1, groups=("gender", "level")),
    Subject(measure="number of books sold", quantity="count", units=("",), things=("genre", "country"), low=1, groups=("channel",)),
    Subject(measure="number of members", quantity="count", units=("",), things=("sport", "city", "age"), low=1, groups=("gender",)),
    Subject(measure="population", quantity="count", units=("",), things=("country", "city", "region"), low=2, groups=("gender", "area")),
    Subject(measure="number of accidents", quantity="count", units=("",), things=("mode", "country", "city"), low=1, groups=("area",)),
    Subject(measure="production", quantity="amount", units=("tonnes", "kilograms"), things=("food", "material"), groups=("country", "region")),
    Subject(
        measure="electricity generation", quantity="amount", units=("gigawatt hours", "megawatt hours"), things=("energy", "country"),
        groups=("energy",),
    ),
    Subject(measure="water consumption", quantity="amount", units=("cubic metres", "litres"), things=("country", "city", "sector"), groups=("sector",)),
    Subject(measure="amount of recycled waste", quantity="amount", units=("tonnes",), things=("material", "city", "country"), groups=("material",)),
    Subject(measure="length of the network", quantity="amount", units=("kilometres",), things=("mode", "country"), low=0, high=6),
    Subject(measure="forest area", quantity="amount", units=("hectares", "square kilometres"), things=("country", "region"), low=0),
    Subject(measure="amount of emissions", quantity="amount", units=("tonnes of CO2",), things=("sector", "country", "mode"), groups=("sector",)),
    Subject(measure="concentration", quantity="amount", units=("milligrams per litre", "grams per litre"), things=("sample",), high=3),
    Subject(measure="share of respondents", quantity="percent", units=("%",), things=("opinion", "age", "country"), groups=("opinion",)),
    Subject(measure="share of users", quantity="percent", units=("%",), things=("device", "age", "country"), groups=("gender", "device")),
    Subject(measure="share of trips", quantity="percent", units=("%",), things=("mode", "city"), groups=("mode",)),
    Subject(measure="unemployment rate", quantity="percent", units=("%",), things=("country", "age", "city"), groups=("gender", "country")),
    Subject(measure="literacy rate", quantity="percent", units=("%",), things=("country", "region"), groups=("gender",)),
    Subject(measure="share of renewable energy", quantity="percent", units=("%",), things=("country", "region"), groups=("sector",)),
    Subject(measure="birth rate per 1,000 people", quantity="rate", units=("",), things=("country", "region"), low=0, high=2),
    Subject(measure="price index", quantity="rate", units=("",), things=("sector", "food", "country"), low=1, high=3, groups=("country",)),
    Subject(measure="customer satisfaction score", quantity="rate", units=("",), things=("company", "city"), low=0, high=2, groups=("age",)),
    Subject(measure="average temperature", quantity="signed", units=("degrees Celsius",), things=("city", "country"), low=0, high=1),
    Subject(measure="net profit", quantity="signed", units=_MONEY, things=("company", "sector"), groups=("channel",)),
    Subject(measure="trade balance", quantity="signed", units=_MONEY, things=("country", "food"), groups=("region",)),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A numeric axis: `at a {name} of 20 {unit}`; points lie `step` apart."""

    name: str
    unit: str
    step: Decimal
    start: Decimal = Decimal(0)
    measures: tuple[tuple[str, str], ...]  # what is measured along it, and its unit


SCALES = (
    Scale(
        name="distance",
        unit="km",
        step=Decimal(5),
        measures=(("signal strength", ""), ("noise level", ""), ("travel time", "minutes")),
    ),
    Scale(name="temperature", unit="°C", step=Decimal(10), measures=(("reaction rate", ""), ("pressure", "kilopascals"))),
    Scale(name="depth", unit="m", step=Decimal(20), measures=(("oxygen content", "milligrams per litre"), ("light intensity", "lux"))),
    Scale(name="dose", unit="mg", step=Decimal("2.5"), measures=(("response", ""), ("blood level", "nanograms per millilitre"))),
    Scale(name="speed", unit="km/h", step=Decimal(10), start=Decimal(10), measures=(("fuel use", "litres"), ("braking distance", "metres"))),
)  # fmt: skip

MONTHS = _words("January|February|March|April|May|June|July|August|September|October|November|December")
PUBLISHERS = ("Datahouse", "Chartwell Institute", "Open Figures", "Northfield Research Center", "The Tally Office")
SOURCES = (
    "National statistics offices",
    "Annual company reports",
    "Household survey",
    "Own calculations",
    "Ministry of Transport",
    "Open Figures database",
    "Institute for Applied Counting",
)
