"""The functions of the package flash_attn that transformers calls, by PyTorch's own copy of FlashAttention-2: same kernels, same layout,
same saved tensors. The package itself has no wheel for PyTorch 2.11 and its own CUDA code, which needs a compiler of the vendor's.
"""

import importlib.machinery
import importlib.metadata
import sys
import types

import torch

VERSION = "2.6.3"


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, deterministic=False):
    """q: batch, tokens, heads, features; k and v may have fewer heads."""
    if window_size != (-1, -1) or softcap or deterministic:
        raise NotImplementedError("flash_attn_func: windows, softcap and determinism are not rebuilt")
    out, *_ = torch.ops.aten._flash_attention_forward(
        q, k, v, None, None, q.shape[1], k.shape[1], dropout_p, causal, False, scale=softmax_scale
    )
    return out


def absent(*args, **options):
    raise NotImplementedError("flash_attn for padded sequences is not rebuilt: packed sequences have no padding")


def install(version=VERSION):
    """Before transformers is imported: it finds a package flash_attn of this version."""
    package = types.ModuleType("flash_attn")
    padding = types.ModuleType("flash_attn.bert_padding")
    package.__spec__ = importlib.machinery.ModuleSpec("flash_attn", None, is_package=True)
    package.__path__, package.__version__ = [], version
    package.flash_attn_func, package.flash_attn_varlen_func, package.bert_padding = flash_attn_func, absent, padding
    padding.index_first_axis = padding.pad_input = padding.unpad_input = absent
    sys.modules |= {"flash_attn": package, "flash_attn.bert_padding": padding}
    installed = importlib.metadata.version
    importlib.metadata.version = lambda name: version if name in ("flash_attn", "flash-attn") else installed(name)
