"""The families of the group `dataset` as frozen dataclasses, and the views of the data that each offers."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from runner.dataset_files import TORCHVISION_FILES
from runner.schema_groups import COUNT, SIDE, allowed

# What the data look like to a model: see runner/data/__init__.py for shapes.
VIEWS = ("image", "mask", "sequence", "next", "forecast")
CUSTOM_VIEW = "custom"  # of boxes and of a user's own data: their form is between these and the model


@dataclass(frozen=True, kw_only=True)
class _Dataset:
    """What every data set has.

    `view` None takes the one that the model needs. `resident` None keeps data of at most 1 GiB on the training device
    and streams others through a DataLoader with `workers` processes.
    """

    VIEWS: ClassVar[tuple[str, ...]] = VIEWS

    name: str
    view: str | None = field(default=None, metadata=allowed(*VIEWS, CUSTOM_VIEW))
    resident: bool | None = None
    workers: int = field(default=0, metadata={"least": 0, "below": 4097})


@dataclass(frozen=True, kw_only=True)
class Digits(_Dataset):
    """scikit-learn's 1,797 handwritten digits, 8x8; `size` enlarges images and masks to size x size pixels."""

    VIEWS: ClassVar[tuple[str, ...]] = ("image", "mask", "sequence")

    size: int | None = field(metadata={"least": 8, "below": 10**6})


@dataclass(frozen=True, kw_only=True)
class Synthetic(_Dataset):
    """Random data of any shape, the same in every process.

    Images and masks are `channels` x `size` x `size`, or take each of `sizes` in turn, a batch each; sequences have
    `length` (or each of `lengths`) steps of `channels` features, characters come from `classes` symbols.
    """

    items: int = field(metadata=COUNT)
    test_items: int = field(metadata=COUNT)
    channels: int = field(metadata=SIDE)
    classes: int = field(metadata={"least": 2, "below": 10**6})
    size: int = field(metadata=SIDE)
    sizes: list[int] = field(metadata=SIDE)
    length: int = field(metadata=SIDE)
    lengths: list[int] = field(metadata=SIDE)


@dataclass(frozen=True, kw_only=True)
class Boxes(_Dataset):
    """Made-up images of `size` x `size` pixels with 1 to `boxes` rectangles, the same in every process.

    A rectangle is of one of `classes` kinds, each with its colours.
    """

    VIEWS: ClassVar[tuple[str, ...]] = (CUSTOM_VIEW,)

    items: int = field(metadata=COUNT)
    test_items: int = field(metadata=COUNT)
    size: int = field(metadata=SIDE)
    boxes: int = field(metadata=SIDE)
    classes: int = field(metadata=SIDE)


@dataclass(frozen=True, kw_only=True)
class Torchvision(_Dataset):
    """One of torchvision's data sets under `root`; `download` fetches it when it is not there.

    `augment` pads by 4 pixels, crops back at random and flips at random.
    """

    VIEWS: ClassVar[tuple[str, ...]] = ("image",)

    root: str
    download: bool
    augment: bool


@dataclass(frozen=True, kw_only=True)
class ImageFolder(_Dataset):
    """A folder train/CLASS/*.png|jpg and test/CLASS/*, or CLASS/* alone: then every fifth image is for testing.

    `size` resizes to size x size pixels; None needs images of one size.
    """

    VIEWS: ClassVar[tuple[str, ...]] = ("image",)

    root: str
    size: int | None = field(metadata=SIDE)
    augment: bool


@dataclass(frozen=True, kw_only=True)
class MaskFolder(_Dataset):
    """A folder with images/NAME and masks/NAME of equal size; every fifth pair is for testing.

    Distinct grey values in the masks are the classes, in rising order. `size` cuts every image into squares of
    size x size pixels; None takes images whole.
    """

    VIEWS: ClassVar[tuple[str, ...]] = ("mask",)

    root: str
    size: int | None = field(metadata=SIDE)
    augment: bool


@dataclass(frozen=True, kw_only=True)
class Text(_Dataset):
    """The characters of one text file in pieces of `length`; the last tenth is for testing."""

    VIEWS: ClassVar[tuple[str, ...]] = ("next",)

    path: str
    length: int = field(metadata=SIDE)


@dataclass(frozen=True, kw_only=True)
class NumberSeries(_Dataset):
    """The numeric columns of a CSV file, standardised; windows of `length` rows predict the next row.

    The last fifth of the rows is for testing. `columns` selects columns by name; empty takes every numeric one.
    """

    VIEWS: ClassVar[tuple[str, ...]] = ("forecast",)

    path: str
    columns: list[str]
    length: int = field(metadata=SIDE)


@dataclass(frozen=True, kw_only=True)
class CustomDataset(_Dataset):
    """A user's own: `_target_` is called with `args` and returns the training and the test set, map-style.

    Items are (input, target) as `view` says; `classes` is the number of classes, symbols or predicted values, which
    the view custom does without.
    """

    VIEWS: ClassVar[tuple[str, ...]] = (*VIEWS, CUSTOM_VIEW)

    _target_: str
    args: dict[str, Any] = field(default_factory=dict)
    classes: int | None = field(default=None, metadata=SIDE)


DATASETS: dict[str, Any] = {
    "digits": Digits,
    "synthetic": Synthetic,
    "boxes": Boxes,
    **dict.fromkeys(TORCHVISION_FILES, Torchvision),
    "image_folder": ImageFolder,
    "mask_folder": MaskFolder,
    "text": Text,
    "series": NumberSeries,
    "custom": CustomDataset,
}
