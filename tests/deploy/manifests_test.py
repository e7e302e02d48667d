"""The manifests of deploy/kubernetes: valid for Kubernetes 1.36, accepted by Pod Security
`restricted`, with commands that the programs understand."""

import copy
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import manifests

ROOT = manifests.ROOT
VALIDATOR = pathlib.Path(sys.executable).parent / "kubernetes-validate"
KUBERNETES_VERSION = "1.36"
# Kinds of other projects, of which the validator has no schema.
FOREIGN_KINDS = {"Certificate", "Issuer", "PodMonitor", "JobSet", "ResourceFlavor", "ClusterQueue",
                 "LocalQueue", "ScaledObject"}
# RDMA needs a capability that `restricted` refuses.
EXTRA_CAPABILITIES = {"rdma": ("IPC_LOCK",)}

needs_yaml = unittest.skipIf(manifests.yaml is None, "PyYAML is missing")
needs_validator = unittest.skipUnless(VALIDATOR.exists(), "kubernetes-validate is missing")
needs_kubectl = unittest.skipUnless(manifests.has_kubectl(), "there is no kubectl from 1.27 on")


def validate(text):
    """Returns the complaints of the validator about objects."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([VALIDATOR, "--strict", "--quiet", "-k", KUBERNETES_VERSION,
                               file.name], capture_output=True, text=True, timeout=300, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    return [line for line in lines
            if not any(f"find schema for kind {kind} " in line for kind in FOREIGN_KINDS)]


@needs_yaml
class BaseTest(unittest.TestCase):
    def setUp(self):
        self.objects = manifests.resources(manifests.KUBERNETES / "base")

    def test_pods_are_restricted_and_their_references_and_flags_exist(self):
        self.assertEqual(manifests.check_all(self.objects), [])

    def test_every_file_of_the_base_is_applied(self):
        folder = manifests.KUBERNETES / "base"
        files = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
        self.assertEqual(files, set(manifests.kustomization(folder)["resources"]))

    def test_the_namespace_enforces_restricted(self):
        labels = self.find("Namespace", "troupe")["metadata"]["labels"]
        self.assertEqual(labels["pod-security.kubernetes.io/enforce"], "restricted")

    def test_workers_are_replaced_only_when_they_are_deleted(self):
        spec = self.find("StatefulSet", "troupe-worker")["spec"]
        self.assertEqual(spec["updateStrategy"], {"type": "OnDelete"})
        self.assertEqual(spec["podManagementPolicy"], "Parallel")

    def test_no_worker_is_evicted_while_the_coordinator_is_away(self):
        # No worker is ready then (docs/service.md), and only this policy counts such pods.
        spec = self.find("PodDisruptionBudget", "troupe-worker")["spec"]
        self.assertEqual(spec["maxUnavailable"], 1)
        self.assertEqual(spec["unhealthyPodEvictionPolicy"], "IfHealthyBudget")

    def test_a_bad_version_of_the_coordinator_can_be_replaced(self):
        # With OrderedReady the controller waits for the bad pod to become ready.
        spec = self.find("StatefulSet", "troupe-coordinator")["spec"]
        self.assertEqual(spec.get("podManagementPolicy"), "Parallel")

    def test_the_catalog_outlasts_its_stateful_set(self):
        spec = self.find("StatefulSet", "troupe-coordinator")["spec"]
        self.assertEqual(spec["persistentVolumeClaimRetentionPolicy"],
                         {"whenDeleted": "Retain", "whenScaled": "Retain"})
        claim, = spec["volumeClaimTemplates"]
        self.assertEqual(claim["spec"]["accessModes"], ["ReadWriteOncePod"])

    def test_shared_memory_of_workers_is_a_volume_with_a_limit(self):
        pod, = manifests.pods(self.find("StatefulSet", "troupe-worker"))
        shm, = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "shm"]
        self.assertEqual(shm["emptyDir"]["medium"], "Memory")
        self.assertIn("sizeLimit", shm["emptyDir"])
        worker, = pod["spec"]["containers"]
        self.assertIn({"name": "shm", "mountPath": "/dev/shm"}, worker["volumeMounts"])

    def test_only_workers_and_labelled_clients_reach_the_api(self):
        default = self.find("NetworkPolicy", "default-deny")["spec"]
        self.assertEqual(default, {"podSelector": {}, "policyTypes": ["Ingress"]})
        rule, = self.find("NetworkPolicy", "troupe-coordinator")["spec"]["ingress"]
        self.assertEqual(rule["ports"], [{"port": 7070, "protocol": "TCP"}])
        labels = [list(source.values())[0]["matchLabels"] for source in rule["from"]]
        self.assertEqual(labels, [{"app.kubernetes.io/name": "troupe",
                                   "app.kubernetes.io/component": "worker"},
                                  {"troupe.dev/client": "true"}, {"troupe.dev/client": "true"}])

    def find(self, kind, name):
        found, = [item for item in self.objects
                  if item["kind"] == kind and item["metadata"]["name"] == name]
        return found


@needs_yaml
@needs_validator
class SchemaTest(unittest.TestCase):
    def test_the_base_and_the_objects_of_components_are_valid(self):
        texts = [(folder / name).read_text()
                 for folder in [manifests.KUBERNETES / "base", *manifests.components()]
                 for name in manifests.kustomization(folder).get("resources", [])]
        self.assertGreater(len(texts), 7)
        self.assertEqual(validate("\n---\n".join(texts)), [])

    def test_a_misspelt_field_is_named_with_its_object(self):
        text = (manifests.KUBERNETES / "base/workers.yaml").read_text()
        found = "\n".join(validate(text.replace("podManagementPolicy", "podManagmentPolicy")))
        self.assertIn("podManagmentPolicy", found)
        self.assertIn("troupe-worker", found)


@needs_yaml
class ComponentsTest(unittest.TestCase):
    def test_every_patch_of_an_overlay_has_its_target(self):
        self.assertTrue(manifests.overlays())
        for overlay in manifests.overlays():
            objects = manifests.resources(manifests.KUBERNETES / "base")
            for name in manifests.kustomization(overlay)["components"]:
                folder = (overlay / name).resolve()
                objects += manifests.resources(folder)
                with self.subTest(overlay=overlay.name, component=folder.name):
                    self.assertEqual(manifests.missing_targets(objects, folder), [])

    def test_every_component_is_part_of_an_overlay(self):
        used = {(overlay / name).resolve() for overlay in manifests.overlays()
                for name in manifests.kustomization(overlay)["components"]}
        self.assertEqual(used, set(manifests.components()))

    def test_the_job_of_the_job_set_can_be_planned(self):
        job = manifests.KUBERNETES / "components/jobset/job.yaml"
        done = subprocess.run([manifests.program_flags.BIN / "troupe", "plan", job],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


@needs_yaml
class TroupeJobTest(unittest.TestCase):
    """The resource TroupeJob, and the rights of the coordinator that reconciles it."""

    def setUp(self):
        folder = manifests.KUBERNETES / "components/jobs-crd"
        self.objects = manifests.resources(folder)
        self.definition, = [item for item in self.objects
                            if item["kind"] == "CustomResourceDefinition"]
        self.version, = self.definition["spec"]["versions"]
        self.schema = self.version["schema"]["openAPIV3Schema"]
        self.example, = manifests.read(manifests.KUBERNETES / "examples/troupe-job.yaml")

    def undeclared(self, value, schema, path=""):
        """Returns the keys of an object that its schema does not have, as the API server does."""
        if isinstance(value, list):
            return [key for one in value for key in self.undeclared(one, schema["items"], path)]
        if not isinstance(value, dict) or "properties" not in schema:
            return []
        found = []
        for key, member in value.items():
            below = schema["properties"].get(key)
            found += ([f"{path}.{key}"] if below is None
                      else self.undeclared(member, below, f"{path}.{key}"))
        return found

    def test_the_example_fits_the_definition(self):
        self.assertEqual(self.undeclared(self.example, self.schema), [])
        self.assertEqual(self.example["apiVersion"],
                         f"{self.definition['spec']['group']}/{self.version['name']}")
        self.example["spec"]["job"]["trainig"] = {}
        self.assertEqual(self.undeclared(self.example, self.schema), [".spec.job.trainig"])

    def test_the_job_of_the_example_can_be_planned(self):
        job = {"name": "example", **self.example["spec"]["job"]}
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            manifests.yaml.safe_dump(job, file)
            file.flush()
            done = subprocess.run([manifests.program_flags.BIN / "troupe", "plan", file.name],
                                  capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_rights_of_the_coordinator_are_these_and_no_more(self):
        role, = [item for item in self.objects if item["kind"] == "Role"]
        rights = {(group, resource): set(rule["verbs"]) for rule in role["rules"]
                  for group in rule["apiGroups"] for resource in rule["resources"]}
        self.assertEqual(rights, {
            ("troupe.dev", "troupejobs"): {"get", "list", "watch", "patch"},
            ("troupe.dev", "troupejobs/status"): {"patch"},
            ("events.k8s.io", "events"): {"create"}})

    def test_the_flag_is_one_of_the_coordinator(self):
        patch = manifests.read(manifests.KUBERNETES / "components/jobs-crd/coordinator.yaml")[0]
        flag, = [change["value"] for change in patch if change["path"].endswith("/args/-")]
        self.assertEqual(manifests.program_flags.problems(["troupe-coordinator", flag]), [])

    def test_a_pod_without_rights_has_no_token(self):
        objects = manifests.resources(manifests.KUBERNETES / "base")
        for item in objects:
            for pod in manifests.pods(item):
                pod["spec"]["automountServiceAccountToken"] = True
        found = [text for text in manifests.check_all(objects) if "token" in text]
        self.assertEqual(len(found), 3)
        found = [text for text in manifests.check_all(objects + self.objects) if "token" in text]
        self.assertEqual(len(found), 2)


@needs_yaml
class ElasticTest(unittest.TestCase):
    """The coordinator may mark pods."""

    folder = manifests.KUBERNETES / "components/elastic"

    def test_the_right_of_the_coordinator_is_to_patch_pods_and_no_more(self):
        role, = [item for item in manifests.resources(self.folder) if item["kind"] == "Role"]
        self.assertEqual(role["rules"],
                         [{"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}])

    def test_the_flag_is_one_of_the_coordinator(self):
        patch, = manifests.read(self.folder / "coordinator.yaml")
        flag, = [change["value"] for change in patch if change["path"].endswith("/args/-")]
        self.assertEqual(flag, "--kubernetes-pods")
        self.assertEqual(manifests.program_flags.problems(["troupe-coordinator", flag]), [])


@needs_yaml
class NamespaceTest(unittest.TestCase):
    """A kustomization with a namespace of its own also names namespace.yaml."""

    def test_what_contains_the_namespace_is_replaced(self):
        found = 0
        for folder in [manifests.KUBERNETES / "base", *manifests.components()]:
            changes = [item for patch in manifests.kustomization(folder).get("patches", [])
                       if "target" not in patch and "path" in patch
                       for item in manifests.read(folder / patch["path"])]
            for item in manifests.resources(folder) + changes:
                wanted = manifests.texts_with_namespace(item)
                found += len(wanted)
                with self.subTest(component=folder.name, item=manifests.name_of(item)):
                    self.assertLessEqual(wanted, manifests.replaced_texts(item))
        self.assertEqual(found, 4)


@needs_yaml
@needs_kubectl
class OverlaysTest(unittest.TestCase):
    def test_overlays_fit_another_namespace(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(manifests.KUBERNETES, pathlib.Path(folder) / "kubernetes")
            for overlay in manifests.overlays():
                (pathlib.Path(folder) / "kustomization.yaml").write_text(
                    "namespace: lab\n"
                    f"resources: [kubernetes/overlays/{overlay.name}]\n"
                    "replacements: [{path: kubernetes/namespace.yaml}]\n")
                objects = manifests.yaml.safe_load_all(manifests.build(pathlib.Path(folder)))
                for item in [one for one in objects if one]:
                    with self.subTest(overlay=overlay.name, item=manifests.name_of(item)):
                        self.assertEqual(manifests.texts_with_namespace(item), set())
                        spaces = {text for path, text in manifests.texts(item)
                                  if path[-1:] == ("namespace",)}
                        self.assertLessEqual(spaces, {"lab"})

    def test_overlays_are_valid_and_their_flags_exist(self):
        texts = []
        for overlay in manifests.overlays():
            with self.subTest(overlay=overlay.name):
                texts.append(manifests.build(overlay))
                objects = [item for item in manifests.yaml.safe_load_all(texts[-1]) if item]
                extra = EXTRA_CAPABILITIES.get(overlay.name, ())
                self.assertEqual(manifests.check_all(objects, extra), [])
        if VALIDATOR.exists():
            self.assertEqual(validate("\n---\n".join(texts)), [])

    def test_rdma_alone_needs_more_than_restricted(self):
        for overlay in manifests.overlays():
            objects = list(manifests.yaml.safe_load_all(manifests.build(overlay)))
            level = [item["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
                     for item in objects if item["kind"] == "Namespace"]
            self.assertEqual(level, ["privileged" if overlay.name == "rdma" else "restricted"])

    def test_with_tls_no_process_is_insecure_and_each_worker_has_its_own_name(self):
        for name in ("tls", "production"):
            text = manifests.build(manifests.KUBERNETES / "overlays" / name)
            self.assertNotIn("--insecure", text)
            objects = list(manifests.yaml.safe_load_all(text))
            workers = [pod for item in objects for pod in manifests.pods(item)
                       if item["metadata"]["labels"].get("app.kubernetes.io/component") == "worker"]
            self.assertEqual(len(workers), 2 if name == "production" else 1)
            for pod in workers:
                tls, = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "tls"]
                self.assertEqual(tls["csi"]["volumeAttributes"]["csi.cert-manager.io/uri-sans"],
                                 "spiffe://troupe/worker/${POD_NAME}")


@needs_yaml
class ChecksTest(unittest.TestCase):
    """The checks find what they look for."""

    def setUp(self):
        self.objects = copy.deepcopy(manifests.resources(manifests.KUBERNETES / "base"))
        self.worker, = [item for item in self.objects if item["kind"] == "StatefulSet"
                        and item["metadata"]["name"] == "troupe-worker"]
        self.pod, = manifests.pods(self.worker)
        self.container, = self.pod["spec"]["containers"]

    def expect(self, text):
        self.assertIn(text, "\n".join(manifests.check_all(self.objects)))

    def test_an_unknown_flag(self):
        self.container["args"].append("--detection=3")
        self.expect("StatefulSet troupe-worker: troupe-worker has no flag --detection")

    def test_a_setting_that_is_not_set(self):
        self.container["args"].append("$(TROUPE_FLAG_OTHER)")
        self.expect("worker: $(TROUPE_FLAG_OTHER) is not set")

    def test_a_root_user_and_a_writable_root(self):
        del self.pod["spec"]["securityContext"]["runAsUser"]
        self.container["securityContext"]["readOnlyRootFilesystem"] = False
        self.expect("runAsUser is None")
        self.expect("worker may write its root file system")

    def test_a_container_without_limits_or_probes(self):
        del self.container["resources"]["limits"]
        self.container["livenessProbe"]["httpGet"]["path"] = "/health"
        self.expect("worker has no limits of memory")
        self.expect("livenessProbe asks for /health")

    def test_a_liveness_probe_that_waits_for_a_planned_stop(self):
        del self.container["livenessProbe"]["terminationGracePeriodSeconds"]
        self.expect("livenessProbe gives worker, which has hung, None s")

    def test_a_path_of_the_host(self):
        self.pod["spec"]["volumes"].append({"name": "host", "hostPath": {"path": "/"}})
        self.expect("volume host is {'hostPath'}")

    def test_references_to_nothing(self):
        self.pod["spec"]["priorityClassName"] = "other"
        self.pod["metadata"]["labels"]["app.kubernetes.io/component"] = "other"
        self.expect("uses PriorityClass other, which does not exist")
        self.expect("StatefulSet troupe-worker does not select its own pods")
        self.expect("PodDisruptionBudget troupe-worker selects no pod")

    def test_a_budget_of_pods_whose_owner_has_no_size(self):
        self.objects += manifests.resources(manifests.KUBERNETES / "components/jobset")
        self.expect("PodDisruptionBudget troupe-worker permits no eviction: JobSet troupe-example")

    def test_a_patch_without_a_target(self):
        folder = manifests.KUBERNETES / "components/gpu"
        objects = [item for item in self.objects if item["kind"] != "StatefulSet"]
        self.assertEqual(len(manifests.missing_targets(objects, folder)), 1)


class FailpointsTest(unittest.TestCase):
    def test_nothing_of_deploy_permits_failpoints(self):
        word = "fail" + "point"
        for path in sorted((ROOT / "deploy").rglob("*")):
            if path.is_file():
                self.assertNotIn(word, path.read_text().lower(), path)
