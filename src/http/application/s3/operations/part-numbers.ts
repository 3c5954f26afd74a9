/** The parameter `partNumber`. */
import { PARTS_MAX } from '../../../../value/files/files.ts'
import { S3Fault } from '../errors.ts'

/** Parses a number from 1 to 10,000. Throws InvalidArgument. */
export function parsePartNumber(query: ReadonlyMap<string, string>): number {
  const text = query.get('partNumber') ?? ''
  const number = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= PARTS_MAX) return number
  throw new S3Fault('InvalidArgument', `partNumber: 1 to ${PARTS_MAX}`)
}
