/**
 * Goal: the manifests of Kubernetes are valid, and the admission `restricted` accepts their pods.
 * Method: kubeconform compares them with the schemas of one version of Kubernetes, which are made
 * from the OpenAPI document in the module of its sources. Without kubeconform or go it is skipped.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ROOT } from '../bundle.ts'
import { shippedConfigs } from './shipped-configs.ts'

const DEADLINE_MS = 1_200_000
const MODULE = 'k8s.io/kubernetes@v1.34.1'
const DEFINITIONS = '#/definitions/'

type Schema = { readonly [key: string]: unknown }

const missing = ['kubeconform', 'go'].filter((name) => spawnSync('which', [name]).status !== 0)
const without = missing.length === 0 ? 'installed' : `${missing.join(' and ')} not installed`

function run(command: string, args: readonly string[]) {
  return spawnSync(command, args, { encoding: 'utf8', cwd: tmpdir(), timeout: DEADLINE_MS })
}

/** Closes the objects of a schema, which the document of Kubernetes leaves open. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  const schema = value as Schema
  if (schema.format === 'int-or-string') return { type: ['string', 'integer'] }
  const copy = Object.fromEntries(Object.entries(schema).map(([key, each]) => [key, closed(each)]))
  return 'properties' in copy ? { additionalProperties: false, ...copy } : copy
}

/** Returns the names of the definitions that a definition refers to, with its own. */
function reachable(definitions: Schema, name: string): Set<string> {
  const found = new Set<string>()
  const queue = [name]
  while (queue.length > 0) {
    const next = queue.pop()!
    if (found.has(next)) continue
    found.add(next)
    const text = JSON.stringify(definitions[next])
    queue.push(...[...text.matchAll(/"#\/definitions\/([^"]+)"/g)].map(([, each]) => each!))
  }
  return found
}

/** Writes one schema for each kind of Kubernetes, by the names that kubeconform looks for. */
function writeSchemas(folder: string): void {
  const downloaded = run('go', ['mod', 'download', '-json', MODULE])
  expect(downloaded.status, downloaded.stderr).toBe(0)
  const path = join(JSON.parse(downloaded.stdout).Dir, 'api/openapi-spec/swagger.json')
  const { definitions } = JSON.parse(readFileSync(path, 'utf8'))
  mkdirSync(folder)
  for (const [name, definition] of Object.entries<Schema>(definitions)) {
    const kinds = (definition['x-kubernetes-group-version-kind'] ?? []) as readonly {
      group: string
      version: string
      kind: string
    }[]
    if (kinds.length !== 1 || !name.startsWith('io.k8s.api.')) continue
    const [{ group, version, kind }] = kinds as [(typeof kinds)[number]]
    const used = [...reachable(definitions, name)]
    const own = Object.fromEntries(used.map((each) => [each, closed(definitions[each])]))
    const file = [kind.toLowerCase(), group.split('.')[0], version].filter(Boolean).join('-')
    const schema = { $ref: `${DEFINITIONS}${name}`, definitions: own }
    writeFileSync(join(folder, `${file}.json`), JSON.stringify(schema))
  }
}

test.skipIf(missing.length > 0)(
  `kubeconform accepts the manifests and no other field (${without})`,
  () => {
    const work = mkdtempSync(join(tmpdir(), 'svc-kubernetes-'))
    onTestFinished(() => rmSync(work, { recursive: true }))
    const schemas = join(work, 'schemas')
    writeSchemas(schemas)
    const location = join(schemas, '{{.ResourceKind}}{{.KindSuffix}}.json')
    const check = (paths: readonly string[]) => {
      const options = ['-strict', '-output', 'json', '-summary', '-schema-location', location]
      return JSON.parse(run('kubeconform', [...options, ...paths]).stdout)
    }
    const manifests = shippedConfigs()
      .filter((path) => path.includes('/kubernetes/') && !path.endsWith('kustomization.yaml'))
      .map((path) => join(ROOT, path))
    const { resources, summary } = check(manifests)
    expect(resources).toEqual([])
    expect(summary).toMatchObject({ invalid: 0, errors: 0, skipped: 0 })
    expect(summary.valid).toBeGreaterThan(10)

    const source = manifests.find((path) => path.endsWith('/statefulset.yaml'))!
    const text = readFileSync(source, 'utf8')
    for (const [from, to] of [
      ['replicas: 1', 'replicas: one'],
      ['readOnlyRootFilesystem', 'readonlyRootFilesystem'],
    ] as const) {
      expect(text).toContain(from)
      const broken = join(work, 'broken.yaml')
      writeFileSync(broken, text.replace(from, to))
      expect(check([broken]).summary, to).toMatchObject({ valid: 0, invalid: 1 })
    }
  },
  DEADLINE_MS,
)
