/** `acme/orders.json` of a Product root: the orders by ACME, and the authority they went to. */
import { canonicalJson } from '../../value/canonical-json.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { integer, text } from '../fields.ts'
import { parse } from '../reading/read.ts'
import { type Infer, schema } from '../schema.ts'

const CertificateOrdersFile = schema({
  version: '1',
  /** The record of another directory does not count. */
  directoryUrl: text(/^https:[\x21-\x7e]{1,2048}$/, 'an HTTPS URL'),
  /** The orders of a week, oldest first, in Unix milliseconds. */
  orders: [
    {
      atMillis: integer(0),
      /**
       * `pending` while it runs, and for ever if the server was killed meanwhile; `cancelled` if
       * the server was stopped.
       */
      outcome: "'pending' | 'cancelled' | 'failed' | 'issued'",
    },
    '[]',
  ],
  /** The time before which the authority accepts no order; 0 for none. */
  retryAtMillis: integer(0),
  /** The failure of the last order; null if a certificate was issued. */
  failure: [{ atMillis: integer(0), reason: 'string' }, '|', 'null'],
} as const)
export type CertificateOrdersFile = Infer<typeof CertificateOrdersFile>

/** Throws ValidationError. */
export function parseCertificateOrders(bytes: Uint8Array): CertificateOrdersFile {
  return parse(CertificateOrdersFile, parseStrictJson(bytes))
}

export function formatCertificateOrders(orders: CertificateOrdersFile): string {
  return `${canonicalJson({ ...orders })}\n`
}
