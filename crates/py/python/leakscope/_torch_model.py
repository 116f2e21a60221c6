"""A torch module as a function of one record: its trained parameters, its secret values, its loss."""

from __future__ import annotations

import contextlib
import fnmatch
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ._native import OptionError
from ._torch_records import Records
from ._torch_recurrent import step_by_step

_NORMS = (torch.nn.modules.batchnorm._BatchNorm,)
_DROPOUTS = (torch.nn.modules.dropout._DropoutNd,)
#: losses whose mean divides by the weights of the labels that are there
_BY_CLASS = (torch.nn.CrossEntropyLoss, torch.nn.NLLLoss)


def bare(module: Any) -> Any:
    """The module inside wrappers that only run it."""
    while True:
        if isinstance(module, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
            raise OptionError("module: TorchScript cannot be differentiated twice here: give the torch.nn.Module that it was "
                              "made of, with the same state_dict")
        if isinstance(module, (str, bytes)) or hasattr(module, "__fspath__") or type(module).__module__.startswith("onnx"):
            raise OptionError("module: a file or an ONNX graph has no gradients here: build the torch.nn.Module and load its "
                              "weights (an ONNX file by the module that it was exported from, or by onnx2torch)")
        inner = getattr(module, "_orig_mod", None)  # torch.compile
        if inner is None and isinstance(module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
            inner = module.module
        if inner is None and type(module).__name__.startswith("GradSampleModule"):
            inner = module._module
        if inner is None:
            break
        module = inner
    if not isinstance(module, torch.nn.Module):
        raise OptionError(f"module: {type(module).__name__}: expected a torch.nn.Module")
    return module


def refuse_modes(module: torch.nn.Module) -> None:
    """Refuses layers that mix records or draw at random in the mode that they are in."""
    for name, layer in module.named_modules():
        messages = f"{name or 'the module'} ({type(layer).__name__})"
        norm = isinstance(layer, _NORMS) and (layer.training or layer.running_mean is None)
        if norm or isinstance(layer, torch.nn.SyncBatchNorm):
            raise OptionError(f"{messages}: over a batch one record's gradient depends on the others: call module.eval(), so that "
                              "running statistics are used, or replace it by torch.nn.GroupNorm or LayerNorm")
        chance = getattr(layer, "p", 0) if isinstance(layer, _DROPOUTS) else getattr(layer, "dropout", 0)
        if layer.training and isinstance(chance, float) and chance > 0 and _draws(layer):
            raise OptionError(f"{messages}: it drops values at random, so that a gradient is not a function of its record: call "
                              "module.eval()")


def _draws(layer: torch.nn.Module) -> bool:
    kinds = (*_DROPOUTS, torch.nn.RNNBase, torch.nn.MultiheadAttention)
    return isinstance(layer, kinds)


def place_of(module: torch.nn.Module) -> tuple[torch.device, torch.dtype]:
    """Where the module lives, and the numbers it computes with."""
    parameters = list(module.parameters())
    if not parameters:
        raise OptionError("the module has no parameters: there is no gradient to measure")
    devices = {p.device for p in parameters} | {b.device for b in module.buffers()}
    if any(d.type == "meta" for d in devices):
        raise OptionError("the module is on the meta device, where parameters have no values: give it some with "
                          "module.to_empty(device='cpu') and load_state_dict")
    if len(devices) > 1:
        raise OptionError(f"the module lives on {' and '.join(sorted(map(str, devices)))}: move it to one device")
    floats = [p.dtype for p in parameters if p.is_floating_point()]
    if not floats:
        raise OptionError("the module's parameters are no real numbers (quantised?): give the module before that")
    return next(iter(devices)), max(floats, key=lambda d: torch.finfo(d).bits)


def trained_names(module: torch.nn.Module, trained: str | Sequence[str] | None) -> list[str]:
    """Names of the parameters whose gradient is released."""
    everything = dict(module.named_parameters())
    if trained is None:
        chosen = [name for name, p in everything.items() if p.requires_grad]
        if not chosen:
            raise OptionError("trained: no parameter has requires_grad, so no gradient is released: name those that are "
                              "trained, for example trained='last' or trained=['*lora*']")
        return chosen
    if trained == "last":
        layers = [(name, layer) for name, layer in module.named_modules() if list(layer.parameters(recurse=False))]
        name, layer = layers[-1]
        own = {f"{name}.{k}" if name else k for k, _ in layer.named_parameters(recurse=False)}
        return [k for k in everything if k in own]
    patterns = [trained] if isinstance(trained, str) else list(trained)
    chosen = [k for k in everything if any(fnmatch.fnmatchcase(k, str(pattern)) for pattern in patterns)]
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(k, str(pattern)) for k in everything):
            raise OptionError(f"trained={pattern!r}: no parameter is called so; they are {', '.join(list(everything)[:8])}…")
    return chosen


@dataclass
class Secret:
    """What of a record is secret: inputs by name, or the embeddings of an integer input."""

    names: list[str]
    #: the embedding layer, the integer input and which of its calls takes it, for every embedded input
    embedded: list[tuple[torch.nn.Module, str, int]]

    @property
    def words(self) -> str:
        """For the document."""
        if self.embedded:
            return "the embeddings of " + " and ".join(called(name) for _, name, _ in self.embedded)
        return " and ".join(map(called, self.names))


def called(name: str) -> str:
    """An input in words: by its name, or by its position."""
    return f"input {name}" if name.isdigit() else name


def secret_of(module: torch.nn.Module, sample: Records, secret: str | Sequence[str] | None) -> Secret:
    """Which inputs are the secret; integers stand for their embeddings."""
    inputs = {k: v for k, v in sample.named().items() if isinstance(v, torch.Tensor)}
    if secret is not None:
        names = [str(s) for s in ([secret] if isinstance(secret, (str, int)) else secret)]
        for name in names:
            if name not in inputs:
                raise OptionError(f"secret={name!r}: the inputs of a record are {', '.join(inputs)}")
    else:
        names = [k for k, v in inputs.items() if v.is_floating_point()]
        if not names:
            names = ["input_ids"] if "input_ids" in inputs else list(inputs)[:1]
    whole = [name for name in names if not inputs[name].is_floating_point()]
    if not whole:
        return Secret(names, [])
    if len(whole) != len(names):
        raise OptionError(f"secret: {', '.join(names)}: some are real numbers and some are not: name the ones or the others")
    calls: dict[int, int] = {}
    result: list[tuple[torch.nn.Module, str, int]] = []

    def see(layer: torch.nn.Module, args: Any, output: Any) -> None:
        at = calls.get(id(layer), 0)
        calls[id(layer)] = at + 1
        for name in whole:
            value = inputs[name]
            if args and args[0].shape == value.shape and torch.equal(args[0], value):
                result.append((layer, name, at))
                break

    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.Embedding)]
    handles = [layer.register_forward_hook(see) for layer in layers]
    try:
        with torch.no_grad():
            call(module, sample.inputs)
    except RuntimeError:
        # without an embedding the module cannot take integers at all; with one, the fault is another
        if result or layers:
            raise
    finally:
        for handle in handles:
            handle.remove()
    for name in whole:
        if not any(n == name for _, n, _ in result):
            raise OptionError(f"{called(name)}: it is integers ({inputs[name].dtype}), and no torch.nn.Embedding takes it as it is, so there "
                              "is nothing continuous to measure leakage over: give real numbers, or name the input that is "
                              "embedded (secret=)")
    return Secret(names, result)


def call(module: torch.nn.Module, inputs: Any) -> Any:
    """The module's output."""
    return module(**inputs) if isinstance(inputs, dict) else module(*inputs)


def scores(output: Any) -> Any:
    """The tensor of an output: itself, the logits of a Hugging Face output, the first of a tuple."""
    if isinstance(output, torch.Tensor):
        return output
    for name in ("logits", "prediction_logits", "last_hidden_state"):
        value = getattr(output, name, None)
        if isinstance(value, torch.Tensor):
            return value
    if isinstance(output, (tuple, list)) and output and isinstance(output[0], torch.Tensor):
        return output[0]
    if isinstance(output, dict):
        tensors = [v for v in output.values() if isinstance(v, torch.Tensor) and v.ndim > 0]
        if tensors:
            return tensors[0]
    raise OptionError(f"the module's output is a {type(output).__name__}: expected a tensor, or something with logits")


def loss_value(loss: Any, output: Any, target: Any) -> torch.Tensor:
    """The loss of a batch: the module's own without one."""
    if loss is None:
        value = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
        if not isinstance(value, torch.Tensor):
            raise OptionError("loss=None: the module's output has no loss: give a loss, or the labels that it computes one from")
        return value
    taken = output if isinstance(output, torch.Tensor) or not hasattr(output, "logits") else output.logits
    value = loss(taken) if target is None else loss(taken, target)
    if not isinstance(value, torch.Tensor):
        raise OptionError(f"loss: it gave a {type(value).__name__}: expected a tensor of torch, made by its functions")
    return value


class Functional:
    """The gradient of one record's loss by the trained parameters, as a function of its secret values."""

    def __init__(self, module: torch.nn.Module, loss: Any, names: list[str], secret: Secret, label_secret: bool) -> None:
        self.module, self.loss, self.secret, self.label_secret = module, loss, secret, label_secret
        everything = dict(module.named_parameters())
        self.trained = {k: everything[k].detach() for k in names}
        # buffers too: functional_call may not write to those of the module
        self.fixed = {k: v.detach() for k, v in everything.items() if k not in self.trained}
        self.fixed.update({k: v.detach() for k, v in module.named_buffers()})
        self.recurrent = [m for m in module.modules() if isinstance(m, torch.nn.RNNBase)]

    @property
    def count(self) -> int:
        """Trained parameters."""
        return sum(v.numel() for v in self.trained.values())

    def split(self, records: Records) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor], Any]:
        """Secret values, other tensors by name, and constants of a chunk."""
        named = records.named()
        secret: list[torch.Tensor] = []
        if self.secret.embedded:
            with torch.no_grad():
                for layer, name, _ in self.secret.embedded:
                    secret.append(torch.zeros_like(layer(named[name])))
        else:
            secret = [named.pop(name) for name in self.secret.names]
        target = records.target
        if self.label_secret:
            secret.append(target)
            target = None
        rest = {k: v for k, v in named.items() if isinstance(v, torch.Tensor)}
        constants = {k: v for k, v in named.items() if not isinstance(v, torch.Tensor)}
        if isinstance(target, torch.Tensor):
            rest["\0target"] = target
        return tuple(secret), rest, constants

    def value(self, trained: Any, secret: Any, rest: Any, constants: Any, positional: int | None) -> Any:
        """Loss and output of one record, as a batch of one."""
        named = {k: v[None] for k, v in rest.items()}
        named.update(constants)
        target = named.pop("\0target", None)
        if self.label_secret:
            target, secret = secret[-1][None], secret[:-1]
        if not self.secret.embedded:
            named.update({name: value[None] for name, value in zip(self.secret.names, secret)})
        inputs: Any = named if positional is None else tuple(named[str(i)] for i in range(positional))
        with self._hooked(secret):
            kwargs = inputs if isinstance(inputs, dict) else None
            args = () if isinstance(inputs, dict) else inputs
            output = torch.func.functional_call(self.module, {**self.fixed, **trained}, args, kwargs)
        loss = loss_value(self.loss, output, target)
        if loss.numel() != 1:
            raise OptionError(f"loss: of one record it has {loss.numel()} values: one number a record is needed: give "
                              "reduction='sum' or 'mean', or sum over a record's values yourself")
        return loss.reshape(()), scores(output)

    @contextlib.contextmanager
    def _hooked(self, secret: Any) -> Iterator[None]:
        handles = [m.register_forward_pre_hook(_first_state, with_kwargs=True) for m in self.recurrent]
        calls: dict[int, int] = {}
        for layer in {id(layer): layer for layer, _, _ in self.secret.embedded}.values():
            def add(layer: Any, _args: Any, output: Any) -> Any:
                at = calls.get(id(layer), 0)
                calls[id(layer)] = at + 1
                for delta, (owner, _, which) in zip(secret, self.secret.embedded):
                    if owner is layer and which == at:
                        output = output + delta[None]
                return output

            handles.append(layer.register_forward_hook(add))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def _first_state(layer: Any, args: Any, kwargs: Any) -> Any:
    """A first state that belongs to the record: torch's own belongs to no record, and vmap cannot add in place to it."""
    if len(args) > 1 or kwargs.get("hx") is not None or not args or not isinstance(args[0], torch.Tensor) or args[0].ndim != 3:
        return None
    x = args[0] if layer.batch_first else args[0].transpose(0, 1)
    zero = (x[:, 0, :1] * 0)[None]
    layers = layer.num_layers * (2 if layer.bidirectional else 1)
    hidden = zero.expand(layers, zero.shape[1], layer.proj_size or layer.hidden_size)
    if isinstance(layer, torch.nn.LSTM):
        return (args[0], (hidden, zero.expand(layers, zero.shape[1], layer.hidden_size))), {}
    return (args[0], hidden), {}


@contextlib.contextmanager
def differentiable(module: torch.nn.Module) -> Iterator[None]:
    """Kernels that can be differentiated twice, and the generators as they were."""
    recurrent = any(isinstance(m, torch.nn.RNNBase) for m in module.modules())
    device = next(module.parameters()).device
    devices = [device] if device.type == "cuda" else []
    with contextlib.ExitStack() as stack, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(tf32|TF32|vmap fallback|performance drop|CUDA initialization).*")
        stack.enter_context(torch.random.fork_rng(devices=devices))
        attention = torch.nn.attention
        stack.enter_context(attention.sdpa_kernel(attention.SDPBackend.MATH))
        stack.enter_context(_whole_masks())
        if recurrent:
            stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
            stack.enter_context(torch.backends.cudnn.flags(enabled=False))
            if device.type != "cpu":
                stack.enter_context(step_by_step())
        yield


@contextlib.contextmanager
def _whole_masks() -> Iterator[None]:
    """Hugging Face models build attention masks whole, as they do while they are traced, instead of looking at values."""
    masks = sys.modules.get("transformers.masking_utils")
    before = getattr(masks, "is_tracing", None)
    if before is None:
        yield
        return
    try:
        setattr(masks, "is_tracing", lambda *_: True)
        yield
    finally:
        setattr(masks, "is_tracing", before)


def check_alone(functional: Functional, sample: Records) -> list[str]:
    """Refuses modules and losses that mix records or draw at random; says what the reader should know.

    Up to four records are run together and one by one.
    """
    module, notes = functional.module, []
    reduction = getattr(functional.loss, "reduction", None)
    if isinstance(functional.loss, _BY_CLASS) and functional.loss.weight is not None and reduction == "mean":
        raise OptionError(f"the loss ({type(functional.loss).__name__} with class weights and reduction='mean') is a mean in which records weigh "
                          "differently, so that a record's share of it depends on the others: give reduction='sum'")
    with torch.no_grad():
        both = [scores(call(module, sample.inputs)) for _ in range(2)]
        if not torch.equal(both[0], both[1]):
            raise OptionError("the module's output is another one at the same record when it runs twice: it draws at random: "
                              "call module.eval(), or draw before the module")
        if len(sample) == 1:
            return notes
        ones = [sample.at([i]) for i in range(len(sample))]
        outputs = [call(module, one.inputs) for one in ones]
        alone = torch.cat([scores(o) for o in outputs])
        if alone.shape != both[0].shape or not _alike(alone, both[0]):
            raise OptionError("the module's output for a record depends on the other records of its batch, so that no gradient "
                              "is one record's own: replace what mixes them (batch statistics, attention or means over the "
                              "first dimension, an if over the whole batch)")
        together = loss_value(functional.loss, call(module, sample.inputs), sample.target)
        each = torch.stack([loss_value(functional.loss, o, one.target).sum() for o, one in zip(outputs, ones)])
    messages = f" (reduction={reduction!r})" if reduction else ""
    if together.numel() == len(sample) and together.ndim > 0:
        if not _alike(together.reshape(-1), each):
            raise OptionError("the loss of a record depends on the other records of its batch: give a loss of one record")
    elif together.numel() == 1 and not _alike(together.reshape(()), each.sum()):
        if not _alike(together.reshape(()), each.mean()):
            raise OptionError(f"the loss{messages} of a batch is neither the sum nor the mean of its records' losses: it is a mean in "
                              "which records weigh differently (class weights, padded tokens), or it compares records. "
                              "Per-record values are needed: give reduction='sum', or reduction='none' and sum over each "
                              "record's own values" + ("; in the place of loss=None, a function of the output's logits and y" if functional.loss is None else ""))
        notes.append(f"The loss{messages} is a mean over the batch; a record's own is that of a batch of one, as Opacus takes it.")
    return notes


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    # far above what another order of additions leaves, far below what another record does
    near = {torch.float64: 1e-8, torch.float32: 1e-4}.get(a.dtype, 3e-2)
    a, b = a.detach().double(), b.detach().double()
    scale = max(float(a.abs().max()), float(b.abs().max()), 1e-30)
    return float((a - b).abs().max()) <= near * scale


def explained(error: Exception) -> OptionError:
    """What torch's derivatives do not do, said with what to replace."""
    text = str(error)
    apart = ", or give vectorize=False, which runs record by record and is slower"
    if "data-dependent control flow" in text or ".item()" in text or "dynamic shape" in text or "boolean mask" in text:
        return OptionError("the module decides by the values of a record (an if or a loop over a tensor, .item(), a mask as an "
                           f"index), which cannot run for many records at once: use torch.where or multiply by the mask{apart}. "
                           f"torch says: {_short(text)}")
    if "more than 1 value per channel" in text:
        return OptionError("the module takes statistics over the batch (torch.nn.functional.batch_norm with training=True), so that one record's "
                           "gradient depends on the others: use running statistics, torch.nn.GroupNorm or LayerNorm. torch says: "
                           f"{_short(text)}")
    in_place = ("in-place", "inplace", "mutate", "broadcast shape")
    if any(word in text for word in in_place):
        return OptionError("the module writes into a tensor in place (x += …, x[…] = …, a buffer that it counts in): make a new "
                           f"tensor instead (x = x + …, torch.cat, torch.stack){apart}. torch says: {_short(text)}")
    if "randomness" in text or "random operation" in text:
        return OptionError(f"the module draws at random: call module.eval(), or draw before it. torch says: {_short(text)}")
    if "forward AD" in text or "not implemented" in text or "derivative for" in text:
        return OptionError("torch has no second derivative of an operation of the module: replace it by a composition of plain "
                           f"ones. torch says: {_short(text)}")
    return OptionError(f"the module and the loss do not run on these records: torch says: {type(error).__name__}: {_short(text)}")


def _short(text: str) -> str:
    return text.strip().splitlines()[0][:300] if text.strip() else "nothing"
