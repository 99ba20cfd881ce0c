"""The plan as a Kubernetes Deployment and Service of vLLM: accelerators, probes, shared memory, keys from secrets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from servewise.plan.flags.common import comments
from servewise.plan.flags.vllm import VERSION, vllm
from servewise.plan.flags.wanted import EngineLaunch, Wanted
from servewise.plan.flags.yaml_text import Value, yaml_text

FILE = "vllm-kubernetes.yaml"
PORT = 8000
START_S, PERIOD_S = 1800, 10  # a large model is fetched, loaded and captured within half an hour
RESOURCES = (("mi", "amd.com/gpu"), ("gaudi", "habana.ai/gaudi"), ("tpu", "google.com/tpu"))
IMAGES = {"amd.com/gpu": "vllm/vllm-openai-rocm"}
COMMENTS = {
    "strategy": "A new pod needs accelerators of its own: stop one before the next is started.",
    "startupProbe": "Weights are fetched, loaded and graphs captured before the first answer.",
    "enableServiceLinks": "Else Services named vllm... put VLLM_... variables into the pod, as if they were settings.",
    "sessionAffinity": "Conversations stay with the replica that has their prefix.",
}


def kubernetes(wanted: Wanted) -> EngineLaunch:
    """The manifest, and the command that applies it; vLLM whatever the plan's engine."""
    launch, name = vllm(wanted), _name(wanted.model)
    documents = [
        yaml_text(_deployment(wanted, name, launch.argv[1:]), COMMENTS),
        yaml_text(_service(wanted, name), COMMENTS),
    ]
    secret = (
        "The keys come from a Secret that is not in this file: kubectl create secret generic "
        f"{name}-keys --from-literal=api-key=... --from-literal=hf-token=..."
    )
    chip = wanted.candidate.deployment.accelerator.title
    where = f"Schedule it onto nodes with {chip}, by a nodeSelector of your cluster."
    notes = (*launch.notes, where, secret)
    text = "\n".join([*comments(notes), "---\n".join(documents)])
    argv = ("kubectl", "apply", "-f", FILE)
    return EngineLaunch(engine="kubernetes", argv=argv, files={FILE: text}, notes=notes)


def _name(model: str) -> str:
    """A name that Kubernetes takes (RFC 1123): of the model, at most 50 characters."""
    last = re.sub(r"[^a-z0-9]+", "-", model.rstrip("/").rsplit("/", 1)[-1].lower()).strip("-")
    return f"vllm-{last[:45].strip('-') or 'model'}"


def _resource(wanted: Wanted) -> str:
    name = wanted.candidate.deployment.accelerator.name
    return next((resource for begin, resource in RESOURCES if name.startswith(begin)), "nvidia.com/gpu")


def _deployment(wanted: Wanted, name: str, words: Sequence[str]) -> dict[str, Value]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": wanted.replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": _pod(wanted, name, words)},
        },
    }


def _pod(wanted: Wanted, name: str, words: Sequence[str]) -> dict[str, Value]:
    volumes: list[Value] = [
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
        {"name": "cache", "emptyDir": {}},
    ]
    return {
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 120,
        "containers": [_container(wanted, name, words)],
        "volumes": volumes,
    }


def _container(wanted: Wanted, name: str, words: Sequence[str]) -> dict[str, Value]:
    resource = _resource(wanted)
    count = wanted.candidate.accelerators
    return {
        "name": "vllm",
        "image": f"{IMAGES.get(resource, 'vllm/vllm-openai')}:v{VERSION}",
        "command": ["vllm", words[0]],
        "args": [*map(_literal, words[1:]), "--port", str(PORT)],
        "env": [_secret(name, "VLLM_API_KEY", "api-key"), _secret(name, "HF_TOKEN", "hf-token", optional=True)],
        "ports": [{"name": "http", "containerPort": PORT}],
        "resources": {"requests": {resource: count}, "limits": {resource: count}},
        "startupProbe": _probe(failures=START_S // PERIOD_S),
        "readinessProbe": _probe(failures=3),
        "livenessProbe": _probe(failures=6),
        "volumeMounts": [
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "cache", "mountPath": "/root/.cache"},
        ],
    }


def _literal(word: str) -> str:
    """``word`` as the container gets it: Kubernetes puts variables for ``$(NAME)`` in args, unless it reads ``$$(``."""
    return word.replace("$(", "$$(")


def _secret(name: str, variable: str, key: str, *, optional: bool = False) -> dict[str, Value]:
    reference: dict[str, Value] = {"name": f"{name}-keys", "key": key}
    if optional:
        reference["optional"] = True
    return {"name": variable, "valueFrom": {"secretKeyRef": reference}}


def _probe(*, failures: int) -> dict[str, Value]:
    request = {"path": "/health", "port": "http"}
    return {"httpGet": request, "periodSeconds": PERIOD_S, "timeoutSeconds": 5, "failureThreshold": failures}


def _service(wanted: Wanted, name: str) -> dict[str, Value]:
    spec: dict[str, Value] = {
        "type": "ClusterIP",
        "selector": {"app": name},
        "ports": [{"name": "http", "port": PORT, "targetPort": "http"}],
    }
    if wanted.replicas > 1:
        spec["sessionAffinity"] = "ClientIP"
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": spec,
    }
