/**
 * Builds Debian and RPM packages with nfpm from one list of files. Everything in them has the time
 * of the sources, so that the same sources give the same bytes.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert } from '../../src/errors/assert.ts'
import { type Format, type PackageFile, type PackageSource, packageFiles } from './files.ts'
import { packageVersion } from './version.ts'

/** Names of the architecture for Debian and for RPM, by target: those for glibc. */
export const PACKAGED = {
  'linux-x64': { deb: 'amd64', rpm: 'x86_64' },
  'linux-arm64': { deb: 'arm64', rpm: 'aarch64' },
} as const

export type PackagedTarget = keyof typeof PACKAGED

/** The newest version of a symbol of glibc that the executables name. */
export const GLIBC_MIN = '2.17'

const HINT = 'go install github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0'
const SCRIPTS = join(import.meta.dirname, 'scripts')

/** The scripts of each format, by the name that nfpm has for it. */
const SCRIPT_FILES = {
  deb: { postinstall: 'deb-postinst', preremove: 'deb-prerm', postremove: 'deb-postrm' },
  rpm: {
    preinstall: 'rpm-pre',
    postinstall: 'rpm-post',
    preremove: 'rpm-preun',
    postremove: 'rpm-postun',
  },
} as const

/** Returns the name of the file of a package. */
export function packageName(target: PackagedTarget, format: Format, version: string): string {
  const architecture = PACKAGED[target][format]
  return format === 'deb'
    ? `svc_${packageVersion(version)}_${architecture}.deb`
    : `svc-${packageVersion(version)}.${architecture}.rpm`
}

/** Returns the text of a script, which begins with the functions that all of them have. */
export function scriptText(name: string): string {
  const read = (file: string): string => readFileSync(join(SCRIPTS, `${file}.sh`), 'utf8')
  return `#!/bin/sh\nset -e\n\n${read('common')}\n${read(name)}`
}

/** Fails with the command that installs nfpm where it is missing. */
export function requireNfpm(): void {
  const { status } = spawnSync('nfpm', ['--version'])
  assert(status === 0, `packages need nfpm on the PATH: ${HINT}`)
}

/** Builds a package and returns its bytes. */
export function buildPackage(
  target: PackagedTarget,
  format: Format,
  source: PackageSource,
): Buffer {
  const work = mkdtempSync(join(tmpdir(), 'svc-package-'))
  try {
    const config = join(work, 'nfpm.json')
    const out = join(work, 'package')
    writeFileSync(config, JSON.stringify(configuration(target, format, source, work)))
    const args = ['package', '--config', config, '--packager', format, '--target', out]
    const env = { ...process.env, SOURCE_DATE_EPOCH: String(source.time) }
    const { status, stderr, stdout } = spawnSync('nfpm', args, { encoding: 'utf8', env })
    assert(status === 0, `nfpm failed: ${stderr}${stdout}`)
    return readFileSync(out)
  } finally {
    rmSync(work, { recursive: true })
  }
}

/** Returns the configuration of nfpm, and writes the files that it names below `work`. */
function configuration(
  target: PackagedTarget,
  format: Format,
  source: PackageSource,
  work: string,
) {
  const mtime = new Date(source.time * 1000).toISOString()
  const stage = (path: string, bytes: string | Uint8Array): string => {
    const staged = join(work, 'files', path)
    mkdirSync(join(staged, '..'), { recursive: true })
    writeFileSync(staged, bytes)
    return staged
  }
  const scripts = Object.entries(SCRIPT_FILES[format]).map(([name, file]) => [
    name,
    stage(`scripts/${file}`, scriptText(file)),
  ])
  return {
    name: 'svc',
    arch: PACKAGED[target].deb,
    platform: 'linux',
    version_schema: 'none',
    version: packageVersion(source.version),
    maintainer: source.maintainer,
    description: DESCRIPTION,
    ...(format === 'rpm' ? { license: 'Apache-2.0' } : {}),
    section: 'net',
    priority: 'optional',
    mtime,
    contents: packageFiles(format, source).map((each) => content(each, format, mtime, stage)),
    scripts: Object.fromEntries(scripts),
    ...RELATIONS[format],
  }
}

function content(
  { path, kind, mode, group, bytes, source }: PackageFile,
  format: Format,
  mtime: string,
  stage: (path: string, bytes: Uint8Array) => string,
) {
  const isRpm = format === 'rpm'
  const types = {
    file: isRpm ? fileType(path) : '',
    config: 'config|noreplace',
    symlink: 'symlink',
    directory: 'dir',
  }
  return {
    dst: path,
    type: types[kind],
    ...(kind === 'directory' ? {} : { src: bytes === null ? source : stage(path, bytes) }),
    file_info: { mode, mtime, owner: 'root', group: isRpm ? (group ?? 'root') : 'root' },
  }
}

/** Returns the mark of a file in an RPM, by which an installation may leave out documentation. */
function fileType(path: string): '' | 'license' | 'doc' {
  if (path.endsWith('/LICENSE')) return 'license'
  return /^\/usr\/share\/(?:doc|man)\//.test(path) ? 'doc' : ''
}

const DESCRIPTION = `Application backend in one executable
svc-server runs typed transactional Functions in sandboxes, with live data,
files, schedules and the identity of operators. svc is its client, which
creates, tests and releases Workspaces.`

const RELATIONS = {
  deb: {
    depends: [`libc6 (>= ${GLIBC_MIN})`],
    recommends: ['ca-certificates'],
    suggests: ['postgresql (>= 16)'],
    // It has a program /usr/bin/svc too.
    conflicts: ['daemontools'],
    deb: { compression: 'gzip' },
  },
  rpm: {
    depends: [`glibc >= ${GLIBC_MIN}`],
    suggests: ['postgresql-server >= 16'],
    conflicts: ['daemontools'],
    release: '1',
    rpm: {
      buildhost: 'localhost',
      compression: 'zstd',
      summary: 'Application backend in one executable',
    },
  },
} as const
