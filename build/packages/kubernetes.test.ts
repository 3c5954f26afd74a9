/** Compares the manifests of Kubernetes with the settings of the server and with each other. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { VARIABLES } from '../../src/settings/variables.ts'
import { ROOT } from '../bundle.ts'
import { USER } from '../image/files.ts'
import { shippedConfigs } from './shipped-configs.ts'

// biome-ignore lint/suspicious/noExplicitAny: the documents of others, compared as they are.
type Manifest = any

const FOLDER = 'dist-config/kubernetes/'
/** Seconds after a signal to stop, after which the server exits in any case. */
const SHUTDOWN_SECONDS_MAX = 25

const files = new Map(
  shippedConfigs()
    .filter((path) => path.startsWith(FOLDER))
    .map((path) => {
      const parsed = Bun.YAML.parse(readFileSync(join(ROOT, path), 'utf8')) as Manifest
      return [path.slice(FOLDER.length), Array.isArray(parsed) ? parsed : [parsed]] as const
    }),
)

const all: Manifest[] = [...files.values()].flat()
const one = (kind: string, name: string): Manifest => {
  const found = all.filter((each) => each.kind === kind && each.metadata?.name === name)
  expect(found, `${kind} ${name}`).toHaveLength(1)
  return found[0]
}

const server = () => one('StatefulSet', 'svc-server').spec
const pods = (): Manifest[] => [
  server().template.spec,
  one('Job', 'svc-init').spec.template.spec,
  one('Pod', 'svc-owner-code').spec,
]

test('each kustomization names the manifests beside it, and the example of secrets in none', () => {
  for (const folder of ['', 'first-start/']) {
    const [kustomization] = files.get(`${folder}kustomization.yaml`)!
    const beside = [...files.keys()]
      .filter((path) => path.startsWith(folder) && !path.slice(folder.length).includes('/'))
      .map((path) => path.slice(folder.length))
      .filter((name) => name !== 'kustomization.yaml' && !name.includes('.example.'))
    expect([...kustomization.resources].sort()).toEqual(beside.sort())
  }
})

test('every object is in the namespace, which enforces the restricted profile', () => {
  const outside = ['Namespace', 'Kustomization']
  for (const { kind, metadata } of all) {
    if (!outside.includes(kind)) expect(metadata.namespace, metadata.name).toBe('svc')
  }
  const { labels } = one('Namespace', 'svc').metadata
  expect(labels['pod-security.kubernetes.io/enforce']).toBe('restricted')
})

test('every pod is within the restricted profile and cannot write its root file system', () => {
  for (const pod of pods()) {
    expect(pod.securityContext).toEqual({
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      fsGroup: USER,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    })
    expect(pod).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false })
    for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) expect(pod).not.toHaveProperty(field)
    for (const volume of pod.volumes) expect(volume).not.toHaveProperty('hostPath')
    expect(pod.containers).toHaveLength(1)
    expect(pod.containers[0].securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      privileged: false,
      capabilities: { drop: ['ALL'] },
    })
    expect(pod.containers[0].ports ?? []).not.toContainEqual(
      expect.objectContaining({ hostPort: expect.anything() }),
    )
  }
})

test('one server runs, keeps its volume and has longer to stop than it needs', () => {
  expect(server().replicas).toBe(1)
  expect(server().template.spec.terminationGracePeriodSeconds).toBeGreaterThan(SHUTDOWN_SECONDS_MAX)
  expect(new Set(Object.values(server().persistentVolumeClaimRetentionPolicy))).toEqual(
    new Set(['Retain']),
  )
})

test('the settings are those of the server, and their files are mounted', () => {
  const { data } = one('ConfigMap', 'svc-server')
  const known = VARIABLES.flatMap(({ name }) => [name as string, `${name}_FILE`])
  expect(Object.keys(data).filter((name) => !known.includes(name))).toEqual([])
  const [container] = server().template.spec.containers
  const mounts: readonly string[] = container.volumeMounts.map((each: Manifest) => each.mountPath)
  const paths = Object.values<string>(data).filter((value) => value.startsWith('/'))
  expect(paths.length).toBeGreaterThan(5)
  for (const path of paths) {
    expect(
      mounts.some((mount) => path === mount || path.startsWith(`${mount}/`)),
      path,
    ).toBe(true)
  }
  for (const [port, setting] of [
    ['management', 'SERVICE_MANAGEMENT_LISTEN'],
    ['application', 'SERVICE_APPLICATION_LISTEN'],
  ] as const) {
    const { containerPort } = container.ports.find((each: Manifest) => each.name === port)
    expect(data[setting]).toBe(`0.0.0.0:${containerPort}`)
  }
})

test('secrets are mounted as files of their own, by the keys of the example', () => {
  const pod = server().template.spec
  const named = new Map<string, string>(
    pod.volumes.flatMap(({ name, secret }: Manifest) =>
      secret === undefined ? [] : [[name, secret.secretName]],
    ),
  )
  expect([...named.values()]).toEqual(['svc-server', 'svc-server-tls'])
  const mounts = pod.containers[0].volumeMounts.filter((each: Manifest) => each.name === 'secrets')
  const keys = Object.keys(one('Secret', 'svc-server').stringData)
  expect(mounts.map((each: Manifest) => each.subPath)).toEqual(keys)
  for (const { mountPath, subPath } of mounts) expect(mountPath).toMatch(new RegExp(`/${subPath}$`))
})

test('services and policies select the server and its ports', () => {
  const { labels } = server().template.metadata
  const ports = server().template.spec.containers[0].ports.map((each: Manifest) => each.name)
  const services = all.filter(({ kind }) => kind === 'Service')
  expect(services).toHaveLength(3)
  for (const { spec } of services) {
    expect(spec.selector).toEqual(labels)
    expect(spec.publishNotReadyAddresses).toBe(true)
    for (const { targetPort } of spec.ports) expect(ports).toContain(targetPort)
  }
  expect(one('Service', server().serviceName).spec.clusterIP).toBe('None')
  expect(server().selector.matchLabels).toEqual(labels)
  const policy = one('NetworkPolicy', 'svc-server').spec
  expect(policy.podSelector.matchLabels).toEqual(labels)
  const open = policy.ingress.filter((rule: Manifest) => rule.from === undefined)
  expect(open.flatMap((rule: Manifest) => rule.ports.map((each: Manifest) => each.port))).toEqual([
    'application',
  ])
})

test('the namespace sends and receives nothing that no policy permits', () => {
  expect(one('NetworkPolicy', 'default-deny').spec).toEqual({
    podSelector: {},
    policyTypes: ['Ingress', 'Egress'],
  })
})

test('the first start makes its root in the volume that the server then mounts', () => {
  const [claim] = server().volumeClaimTemplates
  const made = all.find(({ kind }) => kind === 'PersistentVolumeClaim')
  expect(made.metadata.name).toBe(`${claim.metadata.name}-svc-server-0`)
  expect(made.spec).toEqual(claim.spec)
  const [, init] = pods()
  for (const { volumes } of pods().slice(1)) {
    expect(volumes[0].persistentVolumeClaim.claimName).toBe(made.metadata.name)
  }
  const { args, env } = init.containers[0]
  expect(args[args.indexOf('--root') + 1]).toBe(
    one('ConfigMap', 'svc-server').data.SERVICE_PRODUCT_ROOT,
  )
  // The document names the variable, so that the name of the Environment is a choice.
  expect(args[args.indexOf('--name') + 1]).toBe('$(ENVIRONMENT_NAME)')
  expect(env).toContainEqual({ name: 'ENVIRONMENT_NAME', value: 'svc' })
  expect(readFileSync(join(ROOT, 'src/docs/containers.md'), 'utf8')).toContain('ENVIRONMENT_NAME')
})

test('probes ask the addresses that answer without a Channel', () => {
  const { startupProbe, livenessProbe, readinessProbe } = server().template.spec.containers[0]
  for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
    expect(probe.httpGet).toMatchObject({ port: 'management', scheme: 'HTTPS' })
  }
  // A restart does not bring back a database that is gone.
  expect(livenessProbe.httpGet.path).toBe('/health/live')
  expect(startupProbe.httpGet.path).toBe('/health/live')
  expect(readinessProbe.httpGet.path).toBe('/health/ready')
})
