"""Models of ``transformers`` of images, and of images with text: name -> flow."""

from __future__ import annotations

import torch
from torch_flow import Flow, sizes_of
from torch_flow_makers import with_variance_1
from torch_flow_transformers import (
    IMAGE,
    OPEN_IMAGE,
    causal,
    config,
    detector,
    image,
    model,
    text,
)

SIZES = sizes_of(__file__)
MODELS: dict[str, Flow] = {
    # images
    "vit-open": image(
        "ViTModel", "ViTConfig", axes=OPEN_IMAGE, more=lambda: {"interpolate_pos_encoding": True}
    ),
    "dinov2": image("Dinov2Model", "Dinov2Config", axes=OPEN_IMAGE),
    "dinov2-registers": image("Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", axes=OPEN_IMAGE),
    "dinov3-vit": image("DINOv3ViTModel", "DINOv3ViTConfig", axes=OPEN_IMAGE),
    "dinov3-convnext": image(
        "DINOv3ConvNextModel", "DINOv3ConvNextConfig", axes=OPEN_IMAGE, depths=[1, 1, 2, 1]
    ),
    "siglip-vision": image("SiglipVisionModel", "SiglipVisionConfig"),
    "clip-vision": image("CLIPVisionModelWithProjection", "CLIPVisionConfig"),
    "swiftformer": image("SwiftFormerModel", "SwiftFormerConfig"),
    "efficientformer-like-pvt2": image("PvtV2Model", "PvtV2Config", depths=[1, 1, 1, 1]),
    "focalnet": image("FocalNetModel", "FocalNetConfig", depths=[1, 1, 2, 1]),
    "hiera": image("HieraModel", "HieraConfig", depths=[1, 1, 2, 1]),
    "cvt": image("CvtModel", "CvtConfig"),
    "bit": image("BitModel", "BitConfig", depths=[1, 1, 1, 1]),
    "mgp-str": image(
        "MgpstrForSceneTextRecognition", "MgpstrConfig", axes=IMAGE, image_size=[32, 128], size=(32, 128)
    ),
    "mobilenet-v1": image("MobileNetV1Model", "MobileNetV1Config"),
    "textnet": image("TextNetModel", "TextNetConfig"),
    "ijepa": image("IJepaModel", "IJepaConfig", hidden_size=256, num_attention_heads=8),
    "vitdet": image("VitDetModel", "VitDetConfig", window_block_indices=[0]),
    "vit-msn": image("ViTMSNModel", "ViTMSNConfig"),
    "aimv2-vision": image("Aimv2VisionModel", "Aimv2VisionConfig"),
    "depth-anything": image("DepthAnythingForDepthEstimation", "DepthAnythingConfig", axes=OPEN_IMAGE),
    "zoedepth": image(
        "ZoeDepthForDepthEstimation",
        "ZoeDepthConfig",
        size=384,
        backbone_config={
            "model_type": "beit",
            "image_size": 384,
            "num_hidden_layers": 4,
            "out_indices": [1, 2, 3, 4],
            "use_relative_position_bias": True,
            "reshape_hidden_states": False,
        },
    ),
    "glpn": image("GLPNForDepthEstimation", "GLPNConfig", axes=OPEN_IMAGE, depths=[1, 1, 1, 1]),
    "upernet": image("UperNetForSemanticSegmentation", "UperNetConfig", axes=OPEN_IMAGE),
    "segformer": image(
        "SegformerForSemanticSegmentation", "SegformerConfig", axes=OPEN_IMAGE, depths=[1, 1, 1, 1]
    ),
    "mobilevitv2": image("MobileViTV2ForSemanticSegmentation", "MobileViTV2Config", size=256),
    "maskformer": image("MaskFormerForInstanceSegmentation", "MaskFormerConfig"),
    "mask2former": image("Mask2FormerForUniversalSegmentation", "Mask2FormerConfig"),
    "oneformer-like-eomt": image(
        "EomtForUniversalSegmentation", "EomtConfig", size=224, image_size=224, num_blocks=1
    ),
    "rt-detr": detector("RTDetrForObjectDetection", "RTDetrConfig"),
    "rt-detr-v2": detector("RTDetrV2ForObjectDetection", "RTDetrV2Config"),
    "d-fine": detector("DFineForObjectDetection", "DFineConfig"),
    "deformable-detr": image(
        "DeformableDetrForObjectDetection",
        "DeformableDetrConfig",
        backbone_config={
            "model_type": "resnet",
            "out_features": ["stage2", "stage3", "stage4"],
            "depths": [1, 1, 1, 1],
        },
        **SIZES["deformable-detr"],
    ),
    "rf-detr-like-lw": image(
        "LwDetrForObjectDetection",
        "LwDetrConfig",
        size=256,
        backbone_config={
            "model_type": "lw_detr_vit",
            "hidden_size": 192,
            "num_hidden_layers": 4,
            "out_indices": [2, 4],
            "window_block_indices": [1],
        },
        projector_scale_factors=[1.0],
        num_queries=32,
    ),
    "swin2sr": image(
        "Swin2SRForImageSuperResolution", "Swin2SRConfig", size=48, image_size=48, depths=[2], num_heads=[6]
    ),
    "sam-vision": image(
        "SamVisionModel",
        "SamVisionConfig",
        size=256,
        image_size=256,
        num_hidden_layers=3,
        global_attn_indexes=[2],
    ),
    "superpoint": with_variance_1(
        image("SuperPointForKeypointDetection", "SuperPointConfig", size=64, axes={})
    ),
    "vitpose": image("VitPoseForPoseEstimation", "VitPoseConfig", size=(256, 192), axes={}),
    "timesformer": Flow(
        lambda: (
            model("TimesformerModel", config("TimesformerConfig", num_frames=4)),
            (),
            {"pixel_values": torch.randn(1, 4, 3, 224, 224)},
        ),
        IMAGE,
    ),
    "videomae": Flow(
        lambda: (
            model("VideoMAEModel", config("VideoMAEConfig", num_frames=4)),
            (),
            {"pixel_values": torch.randn(1, 4, 3, 224, 224)},
        ),
        IMAGE,
    ),
    "vjepa2": Flow(
        lambda: (
            model(
                "VJEPA2Model",
                config(
                    "VJEPA2Config",
                    frames_per_clip=4,
                    crop_size=64,
                    hidden_size=256,
                    num_attention_heads=8,
                    pred_hidden_size=96,
                    pred_num_attention_heads=4,
                    pred_num_hidden_layers=2,
                ),
            ),
            (),
            {"pixel_values_videos": torch.randn(1, 4, 3, 64, 64), "skip_predictor": True},
        ),
        {},
    ),
    # images and text
    "clip-text": text("CLIPTextModelWithProjection", "CLIPTextConfig", eos_token_id=2),
    "siglip-text": text("SiglipTextModel", "SiglipTextConfig", masked=False),
    "chinese-clip-vision": image("ChineseCLIPVisionModel", "ChineseCLIPVisionConfig"),
    "trocr-decoder": causal(
        "TrOCRForCausalLM",
        "TrOCRConfig",
        d_model=256,
        decoder_attention_heads=8,
        cross_attention_hidden_size=256,
    ),
    "donut-swin": image("DonutSwinModel", "DonutSwinConfig", depths=[1, 1, 2, 1]),
    "pix2struct-text": causal("Pix2StructTextModel", "Pix2StructTextConfig", **SIZES["pix2struct-text"]),
    "groupvit-vision": image("GroupViTVisionModel", "GroupViTVisionConfig", depths=[1, 1, 1]),
    "layoutlmv3": text("LayoutLMv3Model", "LayoutLMv3Config"),
    "blip2-qformer": Flow(
        lambda: (
            model("Blip2QFormerModel", config("Blip2QFormerConfig", encoder_hidden_size=256)),
            (),
            {"query_embeds": torch.randn(2, 8, 768), "encoder_hidden_states": torch.randn(2, 17, 256)},
        ),
        {},
    ),
}
