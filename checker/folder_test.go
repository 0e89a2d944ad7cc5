package checker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// manifest is a file in a folder of static pods, and what it makes the check wait for on node n0.
type manifest struct {
	file, content string
	// wait is the entry in the missing list; empty when the file does not count.
	wait string
	// script is the published script's entry where it differs, why says what makes the check differ.
	script, why string
}

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, namespace: kube-system}\nspec: {containers: [{name: c, image: i}]}\n"

func podNamed(name string) string { return strings.Replace(pod, "NAME", name, 1) }

// files covers what may lie in a folder of static pods. File names are in order, as both sides list them.
var files = []manifest{
	{file: ".hidden.yaml", content: podNamed("hidden")},
	{file: "01-plain.yaml", content: podNamed("plain"), wait: "kube-system/plain-n0"},
	{file: "02-default-namespace.yaml", content: "apiVersion: v1\nkind: Pod\nmetadata: {name: agent}\n", wait: "default/agent-n0"},
	{file: "03.json", content: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"json","namespace":"logs"}}`, wait: "logs/json-n0"},
	{file: "04-no-extension", content: podNamed("bare"), wait: "kube-system/bare-n0"},
	{file: "05-kube-proxy.yaml.bak", content: podNamed("backup"), wait: "kube-system/backup-n0"},
	{file: "06 with space.yaml", content: podNamed("space"), wait: "kube-system/space-n0"},
	{file: "07-glob[1]*.yaml", content: podNamed("glob"), wait: "kube-system/glob-n0"},
	{file: "08-crlf.yaml", content: strings.ReplaceAll(podNamed("crlf"), "\n", "\r\n"), wait: "kube-system/crlf-n0"},
	{file: "09-document-start.yaml", content: "# a comment\n---\n" + podNamed("start"), wait: "kube-system/start-n0"},
	{file: "10-tabs.json", content: "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Pod\",\n\t\"metadata\": {\"name\": \"tabs\"}\n}\n", wait: "default/tabs-n0"},
	{file: "11-duplicate-key.yaml", content: "apiVersion: v1\nkind: Pod\nmetadata: {name: first, name: last}\n", wait: "default/last-n0"},
	{file: "12-invalid-pod.yaml", content: "apiVersion: v1\nkind: Pod\nmetadata: {name: invalid}\nspec: {containers: none}\n", wait: "default/invalid-n0"},
	{file: "13-labels-of-wrong-type.yaml", content: "apiVersion: v1\nkind: Pod\nmetadata: {name: labels, labels: {a: 1}}\n", wait: "13-labels-of-wrong-type.yaml(unparsed)"},
	{file: "14-config-map.yaml", content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n", wait: "default/settings-n0"},
	{file: "20-empty.yaml", content: "", wait: "20-empty.yaml(unparsed)"},
	{file: "21-text.txt", content: "do not edit\n", wait: "21-text.txt(unparsed)"},
	{file: "22-broken.yaml", content: "apiVersion: v1\nkind: Pod\nmetadata: {name: broken\n", wait: "22-broken.yaml(unparsed)"},
	{file: "23-no-name.yaml", content: "apiVersion: v1\nkind: Pod\nmetadata: {generateName: x-}\n", wait: "23-no-name.yaml(unparsed)"},
	{file: "24-no-kind.yaml", content: "apiVersion: v1\nmetadata: {name: kindless}\n", wait: "24-no-kind.yaml(unparsed)"},
	{file: "25-no-version.yaml", content: "kind: Pod\nmetadata: {name: versionless}\n", wait: "25-no-version.yaml(unparsed)"},
	{file: "26-custom-resource.yaml", content: "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n", wait: "26-custom-resource.yaml(unparsed)"},
	{file: "27-wrong-case.yaml", content: "apiVersion: v1\nkind: Pod\nMetadata: {name: shout}\n", wait: "27-wrong-case.yaml(unparsed)"},
	{file: "28-binary", content: "\x00\x01\xff\xfe", wait: "28-binary(unparsed)"},
	{file: "30-byte-order-mark.yaml", content: "\ufeff" + podNamed("bom"), wait: "kube-system/bom-n0"},
	{file: "31-second-document-only.yaml", content: "---\n---\n" + podNamed("second"), wait: "31-second-document-only.yaml(unparsed)",
		script: "kube-system/second-n0", why: "the kubelet reads the first document only, which is empty: this mirror never comes"},
	{file: "32-two-documents.yaml", content: podNamed("one") + "---\n" + podNamed("two"), wait: "kube-system/one-n0",
		script: "kube-systemtwo kube-system/one-n0", why: "the kubelet runs the first document's pod; the script mixes the two up and waits for ever"},
	{file: "33-pod-list.yaml", content: "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: item}\n", wait: "33-pod-list.yaml(unparsed)",
		script: "default/item-n0", why: "the kubelet takes no lists from files: this mirror never comes"},
	{file: "34-number-as-name.yaml", content: "apiVersion: v1\nkind: Pod\nmetadata: {name: 42}\n", wait: "34-number-as-name.yaml(unparsed)"},
	{file: "link.yaml", wait: "kube-system/plain-n0"},
	{file: "nowhere.yaml"},
	{file: "subfolder.yaml"},
}

// newFolder writes the manifests, a symbolic link to one of them, one to nothing, and a folder.
func newFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, m := range files {
		var err error
		path := filepath.Join(folder, m.file)
		switch m.file {
		case "link.yaml":
			err = os.Symlink("01-plain.yaml", path)
		case "nowhere.yaml":
			err = os.Symlink("no-such-file", path)
		case "subfolder.yaml":
			err = os.Mkdir(path, 0o750)
		default:
			err = os.WriteFile(path, []byte(m.content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
