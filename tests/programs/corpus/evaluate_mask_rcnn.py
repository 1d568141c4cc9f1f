"""torchvision's Mask R-CNN with a ResNet-50, evaluated as its reference script does: images of several sizes, results to the host, masks
pasted into the pictures, matched with the annotated ones by the overlap of boxes and of masks, and an average precision a class.

Expected: ends well, unreliable (how many boxes are left rests on the network's output)
Truth: none; how many boxes a network finds is not known beforehand
"""

import torch
import torchvision
from torchvision.ops import box_iou

torch.manual_seed(0)
CLASSES = 5
model = torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=CLASSES, min_size=96, max_size=128)
model = model.cuda().eval()


def batches():
    for height, width in ((80, 100), (96, 72), (64, 64)):
        boxes = torch.tensor([[8.0, 10.0, 40.0, 50.0], [20.0, 12.0, 60.0, 44.0]])
        masks = torch.zeros(2, height, width, dtype=torch.uint8)
        for mask, (left, top, right, bottom) in zip(masks, boxes.int().tolist()):
            mask[top:bottom, left:right] = 1
        yield torch.rand(3, height, width), {"boxes": boxes, "labels": torch.tensor([1, 3]), "masks": masks}


def mask_iou(found, annotated):
    found, annotated = found.flatten(1).float(), annotated.flatten(1).float()
    both = found @ annotated.t()
    return both / (found.sum(1)[:, None] + annotated.sum(1)[None] - both).clamp(min=1)


def average_precision(scores, hits, annotated):
    order = scores.argsort(descending=True)
    hits = hits[order].float()
    precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
    return (precision * hits).sum().item() / max(annotated, 1)


results = []
with torch.no_grad():
    for image, target in batches():
        outputs = model([image.cuda(), image.flip(-1).cuda()])
        for output in outputs:
            results.append(({key: value.cpu() for key, value in output.items()}, target))

precisions = []
for label in range(1, CLASSES):
    scores, by_box, by_mask, annotated = [], [], [], 0
    for output, target in results:
        mine, theirs = output["labels"] == label, target["labels"] == label
        annotated += int(theirs.sum())
        scores.append(output["scores"][mine])
        masks = output["masks"][mine, 0] > 0.5
        assert masks.shape[1:] == target["masks"].shape[1:]
        for hits, overlaps in ((by_box, box_iou(output["boxes"][mine], target["boxes"][theirs])),
                               (by_mask, mask_iou(masks, target["masks"][theirs]))):  # fmt: skip
            hits.append((overlaps > 0.5).any(1) if overlaps.shape[1] else torch.zeros(int(mine.sum()), dtype=torch.bool))
    for hits in (by_box, by_mask):
        precisions.append(average_precision(torch.cat(scores), torch.cat(hits), annotated))
print("mean average precision", sum(precisions) / len(precisions), "of", len(results), "images")
