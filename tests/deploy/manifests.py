"""Reads the manifests of deploy/kubernetes, and finds what their schemas do not show: references to
objects that do not exist, pods that the Pod Security level `restricted` refuses, flags that the
programs do not have. Each check returns a list of sentences, which is empty if all is well."""

import pathlib
import re
import shutil
import subprocess

import program_flags

try:
    import yaml
except ImportError:  # the tests that need it are skipped
    yaml = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
HEALTH_PAGES = ROOT / "base/http/health_pages.cc"
# The first kubectl whose kustomize has all that the components use.
OLDEST_KUBECTL = (1, 27)
# Seconds that a program which has hung may have before it is killed.
MOST_LIVENESS_GRACE = 10
# Kinds whose size a budget with maxUnavailable knows.
SCALED_KINDS = ("Deployment", "StatefulSet")
VOLUMES_OF_RESTRICTED = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral",
                         "persistentVolumeClaim", "projected", "secret"}


def read(path):
    """Returns the objects of a file."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def kustomization(folder):
    return read(folder / "kustomization.yaml")[0]


def resources(folder):
    """Returns the objects of the files that a kustomization names."""
    return [item for name in kustomization(folder).get("resources", [])
            if (folder / name).is_file() for item in read(folder / name)]


def components():
    return sorted(path.parent for path in KUBERNETES.glob("components/*/kustomization.yaml"))


def overlays():
    return sorted(path.parent for path in KUBERNETES.glob("overlays/*/kustomization.yaml"))


def has_kubectl():
    """Returns whether there is a kubectl that can build the overlays."""
    if shutil.which("kubectl") is None:
        return False
    text = subprocess.run(["kubectl", "version", "--client", "-o", "json"], capture_output=True,
                          text=True, timeout=60, check=False).stdout
    major, minor = (re.search(rf'"{key}": *"(\d+)', text) for key in ("major", "minor"))
    return bool(major and minor) and (int(major[1]), int(minor[1])) >= OLDEST_KUBECTL


def build(folder):
    """Returns what `kubectl apply -k` applies, as text."""
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True,
                          timeout=120, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{folder.name}: {done.stderr}")
    return done.stdout


def name_of(item):
    return f"{item['kind']} {item['metadata']['name']}"


def pods(item):
    """Returns the pod templates of an object."""
    spec = item.get("spec", {})
    if item["kind"] == "Pod":
        return [item]
    if item["kind"] == "JobSet":
        return [job["template"]["spec"]["template"] for job in spec["replicatedJobs"]]
    return [spec["template"]] if "template" in spec else []


def containers(pod):
    return pod["spec"].get("initContainers", []) + pod["spec"]["containers"]


def selects(selector, labels):
    if selector is None or "matchExpressions" in selector:
        return False
    return selector.get("matchLabels", selector).items() <= labels.items()


def environment(container, objects):
    """Returns the variables of a container; those of fields have the field's name."""
    found = {}
    for source in container.get("envFrom", []):
        name = source["configMapRef"]["name"]
        for item in objects:
            if item["kind"] == "ConfigMap" and item["metadata"]["name"] == name:
                found.update(item["data"])
    for variable in container.get("env", []):
        field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        found[variable["name"]] = expand(field or variable.get("value", ""), found)
    return found


def expand(text, variables):
    """Inserts variables as a kubelet does; one that is missing stays as it is."""
    return re.sub(r"\$\((\w+)\)", lambda m: variables.get(m[1], m[0]), text)


def command_line(container, objects):
    """Returns the words that the container executes; of a shell, those of the program it starts."""
    variables = environment(container, objects)
    words = [expand(word, variables)
             for word in container.get("command", []) + container.get("args", [])]
    if words[:2] == ["sh", "-c"]:
        return words[3:]
    return words


def has_rights(account, objects):
    """Returns whether a RoleBinding gives the service account rights at the API server."""
    return any(subject["kind"] == "ServiceAccount" and subject["name"] == account
               for item in objects if item["kind"] == "RoleBinding" for subject in item["subjects"])


def check_restricted(item, pod, extra_capabilities=(), may_have_token=False):
    """Compares a pod with the Pod Security level `restricted`, and with what is asked beyond it: a
    read-only root file system, and a number as user."""
    found, spec = [], pod["spec"]
    context = spec.get("securityContext", {})
    wanted = {"runAsNonRoot": True, "runAsUser": 64100}
    for key, value in wanted.items():
        if context.get(key) != value:
            found.append(f"{key} is {context.get(key)}, not {value}")
    if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        found.append("no seccomp profile")
    found += [f"uses {key}" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    for volume in spec.get("volumes", []):
        kinds = set(volume) - {"name"}
        if not kinds <= VOLUMES_OF_RESTRICTED:
            found.append(f"volume {volume['name']} is {kinds}")
    for container in containers(pod):
        own = container.get("securityContext", {})
        capabilities = own.get("capabilities", {})
        if own.get("allowPrivilegeEscalation") is not False:
            found.append(f"{container['name']} may gain privileges")
        if own.get("readOnlyRootFilesystem") is not True:
            found.append(f"{container['name']} may write its root file system")
        if capabilities.get("drop") != ["ALL"]:
            found.append(f"{container['name']} keeps capabilities")
        if not set(capabilities.get("add", [])) <= set(extra_capabilities):
            found.append(f"{container['name']} adds {capabilities['add']}")
        if own.get("privileged") or own.get("runAsUser") == 0:
            found.append(f"{container['name']} is privileged")
    if spec.get("automountServiceAccountToken") is not False and not may_have_token:
        found.append("has a token of the API server")
    return [f"{name_of(item)}: {text}" for text in found]


def check_containers(item, pod):
    """Requests, limits, probes and mounts of each container."""
    found = []
    health = set(re.findall(r'"(/\w+)"', HEALTH_PAGES.read_text()))
    volumes = {volume["name"] for volume in pod["spec"].get("volumes", [])}
    volumes |= {claim["metadata"]["name"]
                for claim in item.get("spec", {}).get("volumeClaimTemplates", [])}
    for container in containers(pod):
        for part in ("requests", "limits"):
            for resource in ("cpu", "memory"):
                if resource not in container.get("resources", {}).get(part, {}):
                    found.append(f"{container['name']} has no {part} of {resource}")
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                found.append(f"{container['name']} mounts {mount['name']}, which is no volume")
            if "subPath" in mount:
                found.append(f"{container['name']} mounts a subPath, whose files are not replaced")
        ports = {port["name"] for port in container.get("ports", [])}
        if container["name"] in ("coordinator", "worker"):
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                http = container.get(probe, {}).get("httpGet", {})
                if http.get("path") not in health:
                    found.append(f"{probe} asks for {http.get('path')}, not one of {health}")
                if http.get("port") not in ports:
                    found.append(f"{probe} asks port {http.get('port')}, which is not declared")
            grace = container.get("livenessProbe", {}).get("terminationGracePeriodSeconds")
            if grace is None or grace > MOST_LIVENESS_GRACE:
                found.append(f"livenessProbe gives {container['name']}, which has hung, {grace} s")
    return [f"{name_of(item)}: {text}" for text in found]


def check_commands(item, pod, objects):
    """Compares every command line with the flags that the programs have."""
    found = []
    for container in containers(pod):
        line = command_line(container, objects)
        found += [f"{container['name']}: {word} is not set" for word in line if "$(" in word]
        if line[0] in program_flags.PROGRAMS:
            found += program_flags.problems(line)
        elif line[0] != "sleep":
            found.append(f"{container['name']} executes {line[0]}")
    return [f"{name_of(item)}: {text}" for text in found]


def check_references(objects):
    """Names that pods use exist, and selectors select a pod."""
    found = []
    known = {(item["kind"], item["metadata"]["name"]) for item in objects}
    labels = [pod["metadata"].get("labels", {}) for item in objects for pod in pods(item)]
    for item in objects:
        for pod in pods(item):
            spec = pod["spec"]
            used = [("ServiceAccount", spec.get("serviceAccountName")),
                    ("PriorityClass", spec.get("priorityClassName"))]
            for volume in spec.get("volumes", []):
                claim = volume.get("persistentVolumeClaim", {})
                used.append(("PersistentVolumeClaim", claim.get("claimName")))
                used.append(("ConfigMap", volume.get("configMap", {}).get("name")))
            for container in containers(pod):
                used += [("ConfigMap", source["configMapRef"]["name"])
                         for source in container.get("envFrom", [])]
            found += [f"{name_of(item)} uses {kind} {name}, which does not exist"
                      for kind, name in used if name and (kind, name) not in known]
        spec, selector = item.get("spec", {}), None
        if item["kind"] in ("Service", "PodDisruptionBudget", "PodMonitor"):
            selector = spec["selector"]
        elif item["kind"] == "NetworkPolicy":
            selector = spec["podSelector"]
        elif item["kind"] in ("StatefulSet", "Deployment"):
            selector = spec["selector"]
            if not selects(selector, spec["template"]["metadata"]["labels"]):
                found.append(f"{name_of(item)} does not select its own pods")
        if selector is not None and not any(selects(selector, pod) for pod in labels):
            found.append(f"{name_of(item)} selects no pod")
        if "maxUnavailable" in spec:
            found += [f"{name_of(item)} permits no eviction: {name_of(other)} has no size"
                      for other in objects if other["kind"] not in SCALED_KINDS
                      and any(selects(selector, pod["metadata"]["labels"])
                              for pod in pods(other))]
    return found


def check_all(objects, extra_capabilities=()):
    """Returns the findings of all checks."""
    found = check_references(objects)
    for item in objects:
        for pod in pods(item):
            found += check_restricted(item, pod, extra_capabilities,
                                      has_rights(pod["spec"].get("serviceAccountName"), objects))
            found += check_containers(item, pod)
            found += check_commands(item, pod, objects)
    return found


def texts(value, path=()):
    """Yields the texts within an object, each with the keys that lead to it."""
    members = value.items() if isinstance(value, dict) else \
        enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from texts(member, (*path, str(key)))
    if isinstance(value, str):
        yield path, value


def texts_with_namespace(item):
    """Returns the keys that lead to texts which contain the namespace, and which kustomize does not
    change by itself."""
    return {path for path, text in texts(item)
            if path[-1] != "namespace" and
            (".troupe.svc" in text or
             (path[-1] == "kubernetes.io/metadata.name" and text == "troupe"))}


def replaced_texts(item):
    """Returns the keys that lead to the fields of an object that namespace.yaml replaces."""
    found = set()
    for replacement in read(KUBERNETES / "namespace.yaml")[0]:
        for target in replacement["targets"]:
            if target["select"] == {"kind": item["kind"], "name": item["metadata"]["name"]}:
                found |= {tuple(part.strip("[]") for part in re.findall(r"\[[^]]*\]|[^.]+", path))
                          for path in target["fieldPaths"]}
    return found


def missing_targets(objects, folder):
    """Returns the patches of a component that would change none of `objects`."""
    found = []
    for patch in kustomization(folder).get("patches", []):
        target = patch.get("target")
        if target is None:
            text = patch.get("patch") or (folder / patch["path"]).read_text()
            change = yaml.safe_load(text)
            wanted = [item for item in objects if item["kind"] == change["kind"]
                      and item["metadata"]["name"] == change["metadata"]["name"]]
        else:
            labels = dict(pair.split("=") for pair in target["labelSelector"].split(","))
            wanted = [item for item in objects
                      if re.fullmatch(target["kind"], item["kind"])
                      and labels.items() <= item["metadata"].get("labels", {}).items()]
        if not wanted:
            found.append(f"{folder.name}: the patch {patch.get('path', target)} has no target")
    return found
