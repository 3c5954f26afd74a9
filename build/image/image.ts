/**
 * The image of svc-server as an archive that `docker load`, `podman load` and skopeo read: an OCI
 * image layout with the manifest.json that `docker load` reads without containerd. The same sources
 * give the same bytes.
 */
import { createHash } from 'node:crypto'
import { file, gzip, type Member, tar } from '../archives.ts'
import { STATE, USER } from './files.ts'

/** Architectures of images, by their names in the OCI format. */
export type Architecture = 'amd64' | 'arm64'

export interface Release {
  readonly version: string
  /** The commit that the image is built from; empty outside a checkout. */
  readonly commit: string
  /** Unix seconds of everything in the image. */
  readonly time: number
}

/** An image: its manifest and the blobs that the manifest names, by their digests. */
export interface Image {
  readonly architecture: Architecture
  readonly manifest: Blob
  readonly config: Blob
  readonly layers: readonly Blob[]
}

export interface Blob {
  readonly digest: string
  readonly bytes: Uint8Array
}

const CONFIG_TYPE = 'application/vnd.oci.image.config.v1+json'
const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json'
const LAYER_TYPE = 'application/vnd.oci.image.layer.v1.tar+gzip'
const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json'
const SECOND_NANOS = 1_000_000_000

/** Name of the image without a registry; the tag is the version. */
export const IMAGE_NAME = 'svc-server'

export function createImage(
  architecture: Architecture,
  layers: readonly (readonly Member[])[],
  release: Release,
): Image {
  const archives = layers.map((members) => tar(members, release.time))
  const config = json(configOf(architecture, archives.map(digestOf), release))
  const packed = archives.map((archive) => blob(gzip(archive)))
  const manifest = json({
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    config: descriptor(CONFIG_TYPE, config),
    layers: packed.map((layer) => descriptor(LAYER_TYPE, layer)),
    annotations: labels(release),
  })
  return { architecture, manifest, config, layers: packed }
}

/** Returns the archive of one image, which every program loads, also on another architecture. */
export function imageArchive(image: Image, release: Release): Buffer {
  const path = ({ digest }: Blob): string => `blobs/${digest.replace(':', '/')}`
  const docker = [
    {
      Config: path(image.config),
      RepoTags: [`${IMAGE_NAME}:${release.version}`],
      Layers: image.layers.map(path),
    },
  ]
  const members = [file('manifest.json', JSON.stringify(docker))]
  return layout([image], members, manifestDescriptor(image), release)
}

/** Returns the archive of an index of images, for registries: each machine takes its own image. */
export function indexArchive(images: readonly Image[], release: Release): Buffer {
  const index = json({
    schemaVersion: 2,
    mediaType: INDEX_TYPE,
    manifests: images.map(manifestDescriptor),
    annotations: labels(release),
  })
  return layout(images, [blobFile(index)], descriptor(INDEX_TYPE, index), release)
}

function layout(
  images: readonly Image[],
  members: readonly Member[],
  root: ReturnType<typeof descriptor>,
  release: Release,
): Buffer {
  const annotations = {
    'io.containerd.image.name': `docker.io/library/${IMAGE_NAME}:${release.version}`,
    'org.opencontainers.image.ref.name': release.version,
  }
  const index = {
    schemaVersion: 2,
    mediaType: INDEX_TYPE,
    manifests: [{ ...root, annotations }],
  }
  const blobs = images.flatMap(({ manifest, config, layers }) => [manifest, config, ...layers])
  const files = new Map(
    [
      ...members,
      ...blobs.map(blobFile),
      file('index.json', JSON.stringify(index)),
      file('oci-layout', JSON.stringify({ imageLayoutVersion: '1.0.0' })),
    ].map((each) => [each.path, each]),
  )
  const sorted = [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
  return tar(sorted, release.time)
}

/**
 * Describes how the image is run. `Healthcheck` is beyond the OCI format: docker obeys it, and
 * others ignore it.
 */
function configOf(architecture: Architecture, digests: readonly string[], release: Release) {
  const created = new Date(release.time * 1000).toISOString()
  return {
    created,
    architecture,
    os: 'linux',
    config: {
      User: `${USER}:${USER}`,
      ExposedPorts: { '3210/tcp': {}, '3220/tcp': {} },
      Env: ['PATH=/usr/local/bin', `SERVICE_STATE_DIRECTORY=${STATE}/state`],
      Entrypoint: ['svc-server'],
      Cmd: ['serve'],
      Volumes: { [STATE]: {} },
      WorkingDir: '/',
      Labels: labels(release),
      StopSignal: 'SIGTERM',
      Healthcheck: {
        Test: ['CMD', 'svc-server', 'ready'],
        Interval: 30 * SECOND_NANOS,
        Timeout: 10 * SECOND_NANOS,
        StartPeriod: 60 * SECOND_NANOS,
        Retries: 3,
      },
    },
    rootfs: { type: 'layers', diff_ids: digests },
    history: digests.map(() => ({ created, created_by: 'npm run release' })),
  }
}

function labels({ version, commit, time }: Release): Record<string, string> {
  return {
    'org.opencontainers.image.created': new Date(time * 1000).toISOString(),
    'org.opencontainers.image.description': 'A private application backend in one executable',
    'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.title': IMAGE_NAME,
    'org.opencontainers.image.version': version,
    ...(commit === '' ? {} : { 'org.opencontainers.image.revision': commit }),
  }
}

function manifestDescriptor({ manifest, architecture }: Image) {
  return { ...descriptor(MANIFEST_TYPE, manifest), platform: { architecture, os: 'linux' } }
}

function descriptor(mediaType: string, { digest, bytes }: Blob) {
  return { mediaType, digest, size: bytes.length }
}

function blobFile({ digest, bytes }: Blob): Member {
  return file(`blobs/${digest.replace(':', '/')}`, bytes)
}

function json(value: object): Blob {
  return blob(Buffer.from(JSON.stringify(value)))
}

function blob(bytes: Uint8Array): Blob {
  return { digest: digestOf(bytes), bytes }
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}
