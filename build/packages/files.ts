/** The files of the Debian and RPM packages: one list, in which few entries are of one format. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzip } from '../archives.ts'
import { ROOT } from '../bundle.ts'
import { sharedFiles } from '../man/shared-files.ts'
import { shippedConfigs } from './shipped-configs.ts'
import { packageVersion } from './version.ts'

export type Format = 'deb' | 'rpm'

export interface PackageFile {
  /** Absolute path on the machine. */
  readonly path: string
  readonly kind: 'file' | 'config' | 'symlink' | 'directory'
  readonly mode: number
  /** Group of the file in an RPM, whose scripts create it first; root by default. */
  readonly group?: 'svc'
  /** Content; null for the executable, which is not read, and for directories and links. */
  readonly bytes: Buffer | null
  /** Target of a link, or the path of the executable on this machine. */
  readonly source?: string
}

export interface PackageSource {
  readonly executable: string
  /** The text of the licences of what the executable contains. */
  readonly licences: string
  readonly version: string
  /** Unix seconds that every file has. */
  readonly time: number
  readonly maintainer: string
}

/** The directory of documents of the package. */
const DOCUMENTS = '/usr/share/doc/svc'

/** Paths below `share` that a system has elsewhere. */
const ZSH = { deb: 'zsh/vendor-completions/', rpm: 'zsh/site-functions/' } as const

function file(path: string, content: string | Uint8Array, mode = 0o644): PackageFile {
  return { path, kind: 'file', mode, bytes: Buffer.from(content) }
}

/** Reads a file of the repository. */
function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** Returns all files of a package, sorted by path. */
export function packageFiles(format: Format, source: PackageSource): PackageFile[] {
  const files = [
    ...programs(source.executable),
    ...configuration(),
    ...shared(format),
    ...documents(format, source.licences),
    file('/usr/share/svc/installed-by', `${format}\n`),
    ...(format === 'deb' ? debianFiles(source) : []),
  ]
  return files.sort((a, b) => (a.path < b.path ? -1 : 1))
}

function programs(executable: string): PackageFile[] {
  const path = '/usr/bin/svc-server'
  return [
    { path, kind: 'file', mode: 0o755, bytes: null, source: executable },
    { path: '/usr/bin/svc', kind: 'symlink', mode: 0o777, bytes: null, source: 'svc-server' },
  ]
}

function configuration(): PackageFile[] {
  const template = read('dist-config/environment.template')
  return [
    { path: '/etc/svc', kind: 'directory', mode: 0o750, group: 'svc', bytes: null },
    {
      path: '/etc/svc/environment',
      kind: 'config',
      mode: 0o640,
      group: 'svc',
      bytes: Buffer.from(requiredSettings(template)),
    },
    file('/usr/share/svc/environment.template', template),
    file('/usr/lib/systemd/system/svc-server.service', packagedUnit()),
    file('/usr/lib/sysusers.d/svc.conf', 'u svc - "svc application backend" /var/lib/svc\n'),
    file(
      '/usr/lib/tmpfiles.d/svc.conf',
      'd /var/lib/svc 0700 svc svc -\nd /var/lib/svc/state 0700 svc svc -\n',
    ),
  ]
}

/**
 * Returns the settings of the template that are set. With all of the template, every new setting
 * would ask the operator which version of the file to keep.
 */
export function requiredSettings(template: string): string {
  const blocks = template.split('\n\n').filter((block) => /^[A-Z]/m.test(block))
  return [
    '# Settings of svc-server, in the format of EnvironmentFile of systemd.',
    '# /usr/share/svc/environment.template has all of them; svc docs settings explains them.',
    '# They are for a server behind a proxy that terminates TLS. Without a proxy remove',
    '# SERVICE_MANAGEMENT_TLS_TERMINATED, or name a certificate in its place.',
    '',
    `${blocks.join('\n\n').trim()}\n`,
  ].join('\n')
}

function packagedUnit(): string {
  return read('dist-config/svc-server.service').replaceAll('/usr/local/bin/', '/usr/bin/')
}

/** Manual pages, which both systems compress, and completions. */
function shared(format: Format): PackageFile[] {
  return sharedFiles().map(({ path, bytes }) => {
    const moved = path.replace('zsh/site-functions/', ZSH[format])
    return moved.startsWith('share/man/')
      ? file(`/usr/${moved}.gz`, gzip(bytes))
      : file(`/usr/${moved}`, bytes)
  })
}

function documents(format: Format, licences: string): PackageFile[] {
  const examples = shippedConfigs().filter((path) => !/\.(?:plist|template|service)$/.test(path))
  return [
    ...examples.map((path) =>
      file(path.replace('dist-config', `${DOCUMENTS}/examples`), read(path)),
    ),
    compressed('THIRD-PARTY-LICENSES', licences),
    compressed('CHANGELOG.md', read('CHANGELOG.md')),
    // Debian has the text of this licence on every machine.
    ...(format === 'rpm' ? [file('/usr/share/licenses/svc/LICENSE', read('LICENSE'))] : []),
  ]
}

function compressed(name: string, text: string): PackageFile {
  return file(`${DOCUMENTS}/${name}.gz`, gzip(Buffer.from(text)))
}

/** Files that the policy of Debian asks for. */
function debianFiles({ version, time, maintainer }: PackageSource): PackageFile[] {
  const date = new Date(time * 1000)
  const changes = [
    `svc (${packageVersion(version)}) stable; urgency=medium`,
    '',
    `  * Version ${version}: CHANGELOG.md.gz has the changes.`,
    '',
    ` -- ${maintainer}  ${date.toUTCString().replace('GMT', '+0000')}`,
    '',
  ]
  return [
    file(`${DOCUMENTS}/copyright`, copyright(date.getUTCFullYear())),
    compressed('changelog', changes.join('\n')),
    file('/usr/share/lintian/overrides/svc', LINTIAN_OVERRIDES),
  ]
}

function copyright(year: number): string {
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: svc
Comment: /usr/bin/svc-server contains a runtime and libraries with licences of their own, which
 /usr/share/doc/svc/THIRD-PARTY-LICENSES.gz has.

Files: *
Copyright: ${year} the authors of svc
License: Apache-2.0

License: Apache-2.0
 /usr/share/common-licenses/Apache-2.0 has the text of this licence.
`
}

const LINTIAN_OVERRIDES = `# Each finding is intended.
# The executable contains its runtime and libraries, and its code is a section of it, which a
# stripped one would lack. The runtime is released without these two options of the linker.
svc: embedded-library
svc: unstripped-binary-or-object
svc: hardening-no-pie
svc: hardening-no-relro
# A text in the executable names the path; nothing opens it.
svc: uses-dpkg-database-directly
# Secrets: only the server reads them.
svc: non-standard-dir-perm
svc: non-standard-file-perm
# The scripts are those of the RPM too. Nothing is enabled, so deb-systemd-helper has no part.
svc: maintainer-script-calls-systemctl
# Only root writes below /etc/svc.
svc: recursive-privilege-change
`
