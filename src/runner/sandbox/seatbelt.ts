/** The sandbox profile of a runner on macOS. It has no test on other systems. */
import { dlopen, FFIType } from 'bun:ffi'
import { cText } from '../kernel/libc.ts'

const PROFILE = '(version 1)(deny default)(allow sysctl-read)(allow signal (target self))'

/** Enters the profile, which denies files, network and processes; tells whether that succeeded. */
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
