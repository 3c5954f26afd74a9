/** Functions of the C library of Linux, which the runtime does not offer. */
import { dlopen, type FFIFunction } from 'bun:ffi'

type Symbols = Readonly<Record<string, FFIFunction>>

/** Returns the functions; null on another system than Linux. */
export function openLibc<const S extends Symbols>(
  symbols: S,
): ReturnType<typeof dlopen<S>>['symbols'] | null {
  if (process.platform !== 'linux') return null
  const machine = process.arch === 'x64' ? 'x86_64' : 'aarch64'
  for (const name of ['libc.so.6', `libc.musl-${machine}.so.1`]) {
    try {
      return dlopen(name, symbols).symbols
    } catch {}
  }
  return null
}
