/** macOS: the profile that a runner puts itself under. It has no test on other systems. */
import { dlopen, FFIType } from 'bun:ffi'
import { cText } from './libc.ts'

const PROFILE = '(version 1)(deny default)(allow sysctl-read)(allow signal (target self))'

/** Whether the kernel took the profile: no file, network or process from here on. */
export function enterSeatbelt(): boolean {
  try {
    const { symbols } = dlopen('libSystem.B.dylib', {
      sandbox_init: {
        args: [FFIType.ptr, FFIType.u64, FFIType.ptr],
        returns: FFIType.i32,
      },
    })
    const error = new BigUint64Array(1)
    return symbols.sandbox_init(cText(PROFILE), 0, error) === 0
  } catch {
    return false
  }
}
