"""
A Trainer of Hugging Face transformers with AdamWDiff
=====================================================

A tiny BERT learns which first tokens of a sequence are large. An L1 penalty on the word embeddings
makes some of their entries zero, and training resumes from a checkpoint.
Needs ``pip install transformers accelerate``.
"""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from adagrad_diff.torch import L1, AdamWDiff

CONFIG = BertConfig(
    vocab_size=32,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=8,
    hidden_dropout_prob=0.0,
)


def samples(count):
    tokens = torch.randint(0, 32, (count, 6), generator=torch.Generator().manual_seed(0))
    return [{"input_ids": row, "labels": int(row[0] >= 16)} for row in tokens]


def trainer(directory, epochs):
    torch.manual_seed(0)
    model = BertForSequenceClassification(CONFIG)
    words = model.bert.embeddings.word_embeddings.weight
    others = [p for p in model.parameters() if p is not words]
    groups = [{"params": [words], "penalty": L1(1e-3)}, {"params": others}]
    optimizer = AdamWDiff(groups, lr=5e-3)
    arguments = TrainingArguments(
        directory,
        num_train_epochs=epochs,
        per_device_train_batch_size=32,
        save_strategy="epoch",
        logging_strategy="epoch",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    schedule = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    return Trainer(model, arguments, train_dataset=samples(256), optimizers=(optimizer, schedule))


def main():
    with tempfile.TemporaryDirectory() as directory:
        trainer(directory, epochs=3).train()
        resumed = trainer(directory, epochs=6)
        resumed.train(resume_from_checkpoint=True)
    losses = [entry["loss"] for entry in resumed.state.log_history if "loss" in entry]
    print(f"The loss fell from {losses[0]:.3f} to {losses[-1]:.3f} in {len(losses)} epochs.")
    words = resumed.model.bert.embeddings.word_embeddings.weight
    zeros = int((words == 0).sum())
    print(f"{zeros} of {words.numel()} entries of the embeddings are exactly zero.")
    assert len(losses) == 6
    assert losses[-1] < 0.5 * losses[0]
    assert zeros > 0


if __name__ == "__main__":
    main()
