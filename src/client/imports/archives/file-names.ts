/** Names of files inside an export. */
import { exportInvalid } from './export-fault.ts'

const NAME_BYTES_MAX = 4_096
/** A drive, a control character, or a separator of another system. */
const FORBIDDEN = /[\u0000-\u001f\u007f\\]|^[A-Za-z]:/

/** Returns the name. Throws CLIENT_EXPORT_INVALID for one that could leave a directory. */
export function checkedName(name: string): string {
  const isPlain =
    name.length > 0 &&
    name.length <= NAME_BYTES_MAX &&
    !FORBIDDEN.test(name) &&
    name.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
  if (isPlain) return name
  throw exportInvalid(`${JSON.stringify(name.slice(0, 100))} is no path inside the export.`)
}
