/**
 * Rebuilds a release and compares: `npm run release:verify -- DIRECTORY|URL`. It checks the commit
 * that the release names out into a temporary directory, installs the packages of its lock file,
 * builds the same targets there, and prints for each artefact whether the bytes are the same. It
 * exits with 1 if one differs, or if a published file is not the one of SHA256SUMS.
 *
 * The commit must be in the history of this checkout. `--keep` keeps the directory.
 */
import { type SpawnSyncOptions, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { assert } from '../../src/errors/assert.ts'
import { ROOT } from '../bundle.ts'
import { TARGETS } from '../targets.ts'
import { COMMIT_PROPERTY, MODIFIED_PROPERTY } from './bill-of-materials.ts'
import { difference } from './differences.ts'
import { MINISIGN_FILE, PEM_FILE } from './keys.ts'
import { statementOf } from './provenance.ts'

/** The build of a release, as its files say. */
export interface Published {
  /** All digits of the commit. */
  readonly commit: string
  /** Unix seconds of the sources. */
  readonly time: number
  readonly targets: readonly string[]
  readonly images: boolean
  readonly packages: boolean
  readonly url: string
  readonly upgradeUrl: string
  readonly builder: string | null
  /** Digests of the artefacts by name. */
  readonly sums: ReadonlyMap<string, string>
}

/** Parses SHA256SUMS. Throws for names that are not those of files in one directory. */
export function parseSums(text: string): Map<string, string> {
  const lines = text.trimEnd().split('\n')
  return new Map(
    lines.map((line): [string, string] => {
      const [, digest, name] = /^([0-9a-f]{64}) {2}([A-Za-z0-9][\w.+-]*)$/.exec(line) ?? []
      assert(digest !== undefined && name !== undefined, `SHA256SUMS has the line ${line}`)
      return [name, digest]
    }),
  )
}

/** Reads how the release in a directory was built. Throws if it was built from no commit. */
export function readPublished(folder: string): Published {
  const sums = parseSums(read(folder, 'SHA256SUMS'))
  const names = [...sums.keys()]
  const materials = names.find((name) => name.endsWith('.cdx.json'))
  assert(materials !== undefined, 'SHA256SUMS lists no bill of materials')
  const { metadata } = JSON.parse(read(folder, materials))
  const properties = new Map<string, string>(
    (metadata.component.properties ?? []).map((each: { name: string; value: string }) => [
      each.name,
      each.value,
    ]),
  )
  const commit = properties.get(COMMIT_PROPERTY) ?? ''
  assert(/^[0-9a-f]{40,64}$/.test(commit), `${materials} names no commit`)
  assert(
    !properties.has(MODIFIED_PROPERTY),
    `the release was built from files that differ from the commit ${commit}`,
  )
  const provenance = names.find((name) => name.endsWith('.intoto.jsonl'))
  const builder =
    provenance === undefined
      ? null
      : JSON.parse(statementOf(read(folder, provenance))).predicate.runDetails.builder.id
  const installer = read(folder, 'install.sh')
  return {
    commit,
    time: Date.parse(metadata.timestamp) / 1000,
    targets: TARGETS.map(({ name }) => name).filter((target) =>
      names.some((name) => name.endsWith(`-${target}.tar.gz`)),
    ),
    images: names.some((name) => name.includes('-image-')),
    packages: names.some((name) => name.endsWith('.deb')),
    url: /^BASE_URL_DEFAULT='(.*)'$/m.exec(installer)?.[1] ?? '',
    upgradeUrl: /^UPGRADE_URL='(.*)'$/m.exec(installer)?.[1] ?? '',
    builder,
    sums,
  }
}

function read(folder: string, name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}

/** Copies or downloads a release: what its list names, and the public keys if it has some. */
async function fetchRelease(source: string, folder: string): Promise<void> {
  const get = async (name: string, isOptional: boolean): Promise<void> => {
    const bytes = await fetchFile(source, name)
    assert(bytes !== null || isOptional, `${source} lacks ${name}`)
    if (bytes !== null) await writeFile(join(folder, name), bytes)
  }
  await get('SHA256SUMS', false)
  for (const name of parseSums(read(folder, 'SHA256SUMS')).keys()) await get(name, false)
  for (const name of [PEM_FILE, MINISIGN_FILE]) await get(name, true)
}

async function fetchFile(source: string, name: string): Promise<Uint8Array | null> {
  if (!/^https?:/.test(source)) {
    const path = join(resolve(source), name)
    return existsSync(path) ? readFileSync(path) : null
  }
  const response = await fetch(`${source.replace(/\/$/, '')}/${name}`)
  if (response.status === 404) return null
  assert(response.ok, `${response.url} has the status ${response.status}`)
  return new Uint8Array(await response.arrayBuffer())
}

/** Builds the release again in `work` and returns the directory with the result. */
function rebuild({ commit, time, ...built }: Published, folder: string, work: string): string {
  const clone = join(work, 'source')
  run('git', ['clone', '--quiet', '--no-checkout', ROOT, clone], { cwd: work })
  const isKnown = spawnSync('git', ['-C', clone, 'cat-file', '-e', `${commit}^{commit}`])
  assert(isKnown.status === 0, `the commit ${commit} is not in this checkout: run git fetch`)
  run('git', ['checkout', '--quiet', '--detach', commit], { cwd: clone })
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: clone })
  const bun = join(clone, 'node_modules/bun/bin/bun.exe')
  // npm may run no install scripts; this one puts the runtime into place.
  if (spawnSync(bun, ['--version']).status !== 0) {
    run('node', ['node_modules/bun/install.js'], { cwd: clone })
  }
  const out = join(work, 'release')
  const args = ['build/release.ts', ...built.targets, '--out', out, '--keys', folder]
  const { SVC_RELEASE_BUILDER: _, ...environment } = process.env
  run(
    join(clone, 'node_modules/bun/bin/bun.exe'),
    [...args, ...(built.images ? ['--images'] : []), ...(built.packages ? ['--packages'] : [])],
    {
      cwd: clone,
      env: {
        ...environment,
        SOURCE_DATE_EPOCH: String(time),
        SVC_RELEASE_URL: built.url,
        SVC_UPGRADE_URL: built.upgradeUrl,
        ...(built.builder === null ? {} : { SVC_RELEASE_BUILDER: built.builder }),
      },
    },
  )
  return out
}

function run(command: string, args: readonly string[], options: SpawnSyncOptions): void {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', ...options })
  assert(status === 0, `${command} ${args[0]} failed${error ? `: ${error.message}` : ''}`)
}

export interface Comparison {
  readonly name: string
  /** The first place that differs; null if the artefact is the same. */
  readonly difference: string | null
}

/** Compares the artefacts of a release with those of another directory. */
export function compareReleases({ sums }: Published, folder: string, out: string): Comparison[] {
  return [...sums].map(([name, digest]) => {
    const published = readFileSync(join(folder, name))
    if (sha256(published) !== digest) {
      return { name, difference: 'the published file is not the one of SHA256SUMS' }
    }
    const path = join(out, name)
    if (!existsSync(path)) return { name, difference: 'it was not built' }
    return { name, difference: difference(name, published, readFileSync(path)) }
  })
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Returns whether all artefacts of the release are the same when they are built again. */
async function verifyRelease(source: string, work: string): Promise<boolean> {
  const folder = join(work, 'published')
  mkdirSync(folder, { recursive: true })
  await fetchRelease(source, folder)
  const published = readPublished(folder)
  const results = compareReleases(published, folder, rebuild(published, folder, work))
  for (const { name, difference: where } of results) {
    process.stdout.write(where === null ? `same       ${name}\n` : `different  ${name}: ${where}\n`)
  }
  const count = results.filter((each) => each.difference !== null).length
  process.stdout.write(
    count === 0
      ? `All ${results.length} artefacts are those of the commit ${published.commit}.\n`
      : `${count} of ${results.length} artefacts are not those of ${published.commit}.\n`,
  )
  return count === 0
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { keep: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const [source] = positionals
  assert(source !== undefined, 'usage: npm run release:verify -- DIRECTORY|URL')
  const work = mkdtempSync(join(tmpdir(), 'svc-verify-'))
  try {
    process.exitCode = (await verifyRelease(source, work)) ? 0 : 1
  } finally {
    if (values.keep) process.stdout.write(`${work}\n`)
    else rmSync(work, { recursive: true, force: true })
  }
}
