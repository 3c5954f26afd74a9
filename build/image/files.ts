/** The files of the image, in two layers: the C library and accounts, and the program. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { file, type Member } from '../archives.ts'
import { ROOT } from '../bundle.ts'
import { DEBIAN, type LibraryPackage, libraryMembers } from './libc.ts'

/** Number of the user and group `svc`, which owns nothing in the image but its state. */
export const USER = 65532
/** The volume with the state of the server. */
export const STATE = '/var/lib/svc'

const ACCOUNTS: readonly Member[] = [
  file(
    'etc/passwd',
    `root:x:0:0:root:/:/nonexistent\nsvc:x:${USER}:${USER}:svc:${STATE}:/nonexistent\n`,
  ),
  file('etc/group', `root:x:0:\nsvc:x:${USER}:\n`),
  file('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
  file(
    'etc/os-release',
    `ID=debian\nVERSION_ID="${DEBIAN}"\nPRETTY_NAME="svc on Debian ${DEBIAN}"\n`,
  ),
]

/** Directories with other rights than those of root that everyone may read. */
const SPECIAL: readonly Member[] = [
  directory('tmp', 0o1777),
  directory('var/lib/svc', 0o700, USER),
  directory('var/lib/svc/state', 0o700, USER),
]

/** Returns the layer that changes with the C library alone. */
export function baseLayer(library: LibraryPackage): Member[] {
  return withDirectories([...libraryMembers(library), ...ACCOUNTS, ...SPECIAL])
}

/** Returns the layer of one build. The client is the server under another name. */
export function programLayer(executable: string): Member[] {
  const read = (path: string): Uint8Array => readFileSync(join(ROOT, path))
  const server = 'usr/local/bin/svc-server'
  return withDirectories([
    file(server, readFileSync(executable), 0o755),
    { ...file('usr/local/bin/svc', '', 0o755), type: 'hardlink', target: server },
    file('usr/share/doc/svc/LICENSE', read('LICENSE')),
    file('usr/share/doc/svc/THIRD-PARTY-LICENSES', read('dist/THIRD-PARTY-LICENSES')),
  ])
}

function directory(path: string, mode = 0o755, owner = 0): Member {
  return { type: 'directory', path, mode, owner, bytes: new Uint8Array(), target: '' }
}

/**
 * Adds the directories above the members and sorts them: a directory comes before what it contains,
 * and a hard link after its target.
 */
function withDirectories(members: readonly Member[]): Member[] {
  const own = new Map(members.map((each) => [each.path, each]))
  for (const { path } of members) {
    const parts = path.split('/')
    for (let count = 1; count < parts.length; count++) {
      const above = parts.slice(0, count).join('/')
      if (!own.has(above)) own.set(above, directory(above))
    }
  }
  const links = (member: Member) => (member.type === 'hardlink' ? 1 : 0)
  return [...own.values()].sort((a, b) => links(a) - links(b) || (a.path < b.path ? -1 : 1))
}
