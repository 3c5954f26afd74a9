/**
 * The C library of the image: a package of Debian at a fixed version, checked against its digest.
 * apt fetches it with a state of its own, which changes nothing on the machine that builds.
 *
 * To update it, take version and digest from `apt-get download --print-uris libc6` on Debian.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert } from '../../src/errors/assert.ts'
import { file, type Member } from '../archives.ts'
import { ROOT } from '../bundle.ts'
import { readTar } from './read-tar.ts'

export interface LibraryPackage {
  /** Name of the architecture for Debian. */
  readonly architecture: string
  readonly sha256: string
  /** Directory of the libraries. */
  readonly directory: string
  /** The loader that executables name, and the file that it links to. */
  readonly loader: string
  readonly loaderFile: string
}

/** The release of Debian that both packages are from. */
export const DEBIAN = '12'
export const LIBC_VERSION = '2.36-9+deb12u14'
export const LIBRARY_PACKAGES: Readonly<Record<'amd64' | 'arm64', LibraryPackage>> = {
  amd64: {
    architecture: 'amd64',
    sha256: 'ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf',
    directory: 'lib/x86_64-linux-gnu',
    loader: 'lib64/ld-linux-x86-64.so.2',
    loaderFile: 'ld-linux-x86-64.so.2',
  },
  arm64: {
    architecture: 'arm64',
    sha256: '01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4',
    directory: 'lib/aarch64-linux-gnu',
    loader: 'lib/ld-linux-aarch64.so.1',
    loaderFile: 'ld-linux-aarch64.so.1',
  },
}

/** The libraries that the executable names. */
const LIBRARIES = ['libc.so.6', 'libdl.so.2', 'libm.so.6', 'libpthread.so.0']
const COPYRIGHT = 'usr/share/doc/libc6/copyright'

/**
 * Returns the loader, the libraries, their licence and the record of the package that scanners for
 * known weaknesses read.
 */
export function libraryMembers(wanted: LibraryPackage): Member[] {
  const archive = fetchPackage(wanted)
  const packed = run('dpkg-deb', ['--fsys-tarfile', archive])
  const found = new Map(readTar(packed).map((each) => [each.path.replace(/^\.\//, ''), each]))
  const content = (path: string): Uint8Array => {
    const member = found.get(path)
    assert(member?.type === 'file', `${archive} lacks the file ${path}`)
    return member.bytes
  }
  const library = (name: string): Member => {
    const path = `${wanted.directory}/${name}`
    return file(path, content(path), 0o755)
  }
  const target = `/${wanted.directory}/${wanted.loaderFile}`
  return [
    ...[...LIBRARIES, wanted.loaderFile].map(library),
    { ...file(wanted.loader, '', 0o777), type: 'symlink', target },
    file(COPYRIGHT, content(COPYRIGHT)),
    file('var/lib/dpkg/status.d/libc6', run('dpkg-deb', ['--field', archive])),
  ]
}

/** Returns the path of the package below dist/base, where it may also be put by hand. */
function fetchPackage({ architecture, sha256 }: LibraryPackage): string {
  const folder = join(ROOT, 'dist/base')
  const path = join(folder, `libc6_${LIBC_VERSION}_${architecture}.deb`)
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true })
    download(architecture, folder)
  }
  const digest = createHash('sha256').update(readFileSync(path)).digest('hex')
  assert(digest === sha256, `${path} does not have the digest of build/image/libc.ts: remove it`)
  return path
}

function download(architecture: string, folder: string): void {
  const state = mkdtempSync(join(tmpdir(), 'svc-apt-'))
  try {
    for (const name of ['lists/partial', 'cache/archives/partial']) {
      mkdirSync(join(state, name), { recursive: true })
    }
    writeFileSync(join(state, 'status'), '')
    const options = [
      `APT::Architecture=${architecture}`,
      `APT::Architectures=${architecture}`,
      'APT::Sandbox::User=root',
      `Dir::State::Lists=${join(state, 'lists')}`,
      `Dir::State::status=${join(state, 'status')}`,
      `Dir::Cache=${join(state, 'cache')}`,
    ].flatMap((option) => ['-o', option])
    run('apt-get', [...options, '-q', 'update'])
    run('apt-get', [...options, '-q', 'download', `libc6=${LIBC_VERSION}`], folder)
  } finally {
    rmSync(state, { recursive: true })
  }
}

function run(command: string, args: readonly string[], cwd = ROOT): Buffer {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, maxBuffer: 64 << 20 })
  const hint = `put libc6 ${LIBC_VERSION} of Debian ${DEBIAN} into dist/base`
  assert(status === 0, `${command} failed; ${hint}: ${error?.message ?? stderr}`)
  return stdout
}
