package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// descriptor is OCI's way to point at a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// archive collects what `ctr images import` reads: an OCI image layout in a tar file.
type archive struct {
	files *tar.Writer
}

// writeImage makes an image of one layer: busybox with a link for each of its applets, the few files that programs expect of a
// root file system, and what is in the folder `more`, if that is not empty.
func writeImage(name, path, busybox string, more string, command []string) error {
	layer, err := rootFileSystem(busybox, more)
	if err != nil {
		return err
	}
	// What a pod gives as `args` comes behind the one, and in place of the other.
	start := "Cmd"
	if more != "" {
		start = "Entrypoint"
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	image := archive{tar.NewWriter(out)}
	layerAt, err := image.blob("application/vnd.oci.image.layer.v1.tar", layer)
	if err != nil {
		return err
	}
	configAt, err := image.object("application/vnd.oci.image.config.v1+json", map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Env": []string{"PATH=/bin:/usr/bin"}, start: command},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{layerAt.Digest}},
	})
	if err != nil {
		return err
	}
	manifestAt, err := image.object("application/vnd.oci.image.manifest.v1+json", map[string]any{
		"schemaVersion": 2,
		"mediaType":     "application/vnd.oci.image.manifest.v1+json",
		"config":        configAt,
		"layers":        []descriptor{layerAt},
	})
	if err != nil {
		return err
	}
	manifestAt.Annotations = map[string]string{"io.containerd.image.name": name}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifestAt}})
	if err != nil {
		return err
	}
	if err := put(image.files, "index.json", 0o644, index); err != nil {
		return err
	}
	if err := put(image.files, "oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	return image.files.Close()
}

func rootFileSystem(busybox, more string) ([]byte, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("%s does not list its applets: %w", busybox, err)
	}
	var buffer bytes.Buffer
	layer := tar.NewWriter(&buffer)
	for _, folder := range []struct {
		name string
		mode int64
	}{{"bin", 0o755}, {"dev", 0o755}, {"etc", 0o755}, {"proc", 0o755}, {"root", 0o700}, {"sys", 0o755}, {"tmp", 0o1777}} {
		if err := layer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder.name + "/", Mode: folder.mode}); err != nil {
			return nil, err
		}
	}
	if err := put(layer, "bin/busybox", 0o755, program); err != nil {
		return nil, err
	}
	for _, applet := range strings.Fields(string(list)) {
		if applet == "busybox" {
			continue
		}
		link := tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox", Mode: 0o777}
		if err := layer.WriteHeader(&link); err != nil {
			return nil, err
		}
	}
	users := "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
	if err := put(layer, "etc/passwd", 0o644, []byte(users)); err != nil {
		return nil, err
	}
	if err := put(layer, "etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n")); err != nil {
		return nil, err
	}
	if more != "" {
		if err := layer.AddFS(os.DirFS(more)); err != nil {
			return nil, err
		}
	}
	if err := layer.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

func (image archive) object(mediaType string, value any) (descriptor, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, err
	}
	return image.blob(mediaType, text)
}

func (image archive) blob(mediaType string, content []byte) (descriptor, error) {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}, put(image.files, "blobs/sha256/"+sum, 0o644, content)
}

func put(files *tar.Writer, name string, mode int64, content []byte) error {
	if err := files.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := files.Write(content)
	return err
}
