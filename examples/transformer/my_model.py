"""A small transformer that foretells the next letter."""

import torch
from torch import nn

LETTERS, LENGTH = 28, 32
WIDTH, HEADS, LAYERS = 256, 4, 2


class Transformer(nn.Module):
    """Letters in, [batch, length]; scores of the next one out, classes last.
    """

    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(LETTERS, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0, activation="gelu",
            batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS)
        self.norm = nn.LayerNorm(WIDTH)
        self.scores = nn.Linear(WIDTH, LETTERS)
        # A place sees itself and what came before it.
        hidden = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, x):
        length = x.size(1)
        x = self.letters(x) + self.places[:length]
        x = self.layers(x, mask=self.hidden[:length, :length])
        return self.scores(self.norm(x))


def build(point):
    return Transformer()
