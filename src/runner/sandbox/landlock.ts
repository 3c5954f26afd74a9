/**
 * Landlock: a restricted process opens only the listed files, for reading; it uses no TCP and sends
 * no signal to other processes. The restriction holds for the calling thread and its descendants.
 */
import { ptr } from 'bun:ffi'
import { cText, libc } from '../kernel/libc.ts'

const CREATE_RULESET = 444
const ADD_RULE = 445
const RESTRICT_SELF = 446
const RULE_PATH_BENEATH = 1
const CREATE_RULESET_VERSION = 1

const EXECUTE = 1n << 0n
const READ_FILE = 1n << 2n
const READ_DIR = 1n << 3n
/** Rights that each version can deny; a right that it does not know would make the call fail. */
const FILE_RIGHTS_BY_ABI = [0n, 0x1fffn, 0x3fffn, 0x7fffn, 0x7fffn, 0xffffn]
const BIND_TCP_AND_CONNECT_TCP = 3n
const SCOPE_ABSTRACT_SOCKET_AND_SIGNAL = 3n
const O_PATH_CLOEXEC = 0o12000000

export interface LandlockRules {
  /** Files that may be read and executed; files that do not exist are skipped. */
  readonly files: readonly string[]
  /** Directories whose whole content may be read. */
  readonly trees: readonly string[]
}

/** Returns the version that the kernel offers; 0 if it has none or it is disabled. */
export function landlockVersion(): number {
  const version = libc().syscall(CREATE_RULESET, 0, 0, CREATE_RULESET_VERSION, 0, 0)
  return Math.max(0, version)
}

/** Restricts this thread and tells whether that succeeded; `no_new_privs` must be set before. */
export function restrictFiles(version: number, rules: LandlockRules): boolean {
  const rights = FILE_RIGHTS_BY_ABI[Math.min(version, FILE_RIGHTS_BY_ABI.length - 1)]!
  const attributes = new BigUint64Array([
    rights,
    version >= 4 ? BIND_TCP_AND_CONNECT_TCP : 0n,
    version >= 6 ? SCOPE_ABSTRACT_SOCKET_AND_SIGNAL : 0n,
  ])
  const bytes = version >= 6 ? 24 : version >= 4 ? 16 : 8
  const ruleset = libc().syscall(CREATE_RULESET, ptr(attributes), bytes, 0, 0, 0)
  if (ruleset < 0) return false
  for (const file of rules.files) allow(ruleset, file, EXECUTE | READ_FILE)
  for (const tree of rules.trees) allow(ruleset, tree, EXECUTE | READ_FILE | READ_DIR)
  const restricted = libc().syscall(RESTRICT_SELF, ruleset, 0, 0, 0, 0) === 0
  libc().close(ruleset)
  return restricted
}

function allow(ruleset: number, path: string, rights: bigint): void {
  const fd = libc().open(cText(path), O_PATH_CLOEXEC, 0)
  if (fd < 0) return
  // struct landlock_path_beneath_attr is packed: u64 rights, s32 descriptor.
  const rule = new DataView(new ArrayBuffer(12))
  rule.setBigUint64(0, rights, true)
  rule.setInt32(8, fd, true)
  libc().syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, ptr(rule), 0, 0)
  libc().close(fd)
}
