/** Settings and neighbours with which the server does not start. */
import { argv } from '../argv.ts'
import type { Situation } from './situations.ts'

export const SERVERS: readonly Situation[] = [
  {
    situation: 'no database is configured',
    run: argv`svc-server check`,
    environment: { SERVICE_IDENTITY_DATABASE_URL_FILE: '', SERVICE_IDENTITY_DATABASE_URL: '' },
    exit: 78,
    message: [
      'svc-server: SERVER_CONFIGURATION_MISSING: SERVICE_IDENTITY_DATABASE_URL: A ' +
        'required setting is missing or empty. Expected: PostgreSQL URL of the identity ' +
        'database: postgres://user:password@host/database. Set the named variable, or its ' +
        '_FILE form, then restart the server.',
    ],
  },
  {
    situation: 'the database URL has no database name',
    run: argv`svc-server check`,
    environment: {
      SERVICE_IDENTITY_DATABASE_URL_FILE: '',
      SERVICE_IDENTITY_DATABASE_URL: 'postgres://ada@localhost',
    },
    exit: 78,
    message: [
      'svc-server: SERVER_DATABASE_URL_INVALID: SERVICE_IDENTITY_DATABASE_URL: A ' +
        'database URL needs the postgres scheme, a host and one database name. Expected: ' +
        'postgres://user:password@host:port/database. Correct the named variable. The form is ' +
        'postgres://user:password@host:5432/database.',
    ],
  },
  {
    situation: 'one secret is configured twice',
    run: argv`svc-server check`,
    environment: { SERVICE_IDENTITY_DATABASE_URL: 'postgres://ada@localhost/a' },
    exit: 78,
    message: [
      'svc-server: SERVER_SECRET_CONFIGURATION_CONFLICT: SERVICE_IDENTITY_DATABASE_URL, ' +
        'SERVICE_IDENTITY_DATABASE_URL_FILE: One secret is configured in more than one ' +
        'way. Expected: exactly one of them. Keep exactly one of the named variables.',
    ],
  },
  {
    situation: 'the pepper is too short',
    run: argv`svc-server check`,
    environment: {
      SERVICE_MANAGEMENT_LISTEN: '127.0.0.1:0',
      SERVICE_APPLICATION_LISTEN: '127.0.0.1:0',
      SERVICE_PLATFORM_IDENTITY_PEPPER_FILE: '',
      SERVICE_PLATFORM_IDENTITY_PEPPER: 'AAAA',
    },
    exit: 78,
    message: [
      'svc-server: SERVER_CONFIGURATION_INVALID: SERVICE_PLATFORM_IDENTITY_PEPPER: A ' +
        'setting does not have the required form. Expected: URL-safe base64 without ' +
        'padding of exactly 32 bytes. Correct the named variable; `svc-server check` ' +
        'validates it and changes nothing.',
    ],
  },
  {
    situation: 'the pepper does not belong to the database',
    run: argv`svc-server serve`,
    environment: {
      SERVICE_MANAGEMENT_LISTEN: '127.0.0.1:0',
      SERVICE_APPLICATION_LISTEN: '127.0.0.1:0',
      SERVICE_PLATFORM_IDENTITY_PEPPER_FILE: '',
      SERVICE_PLATFORM_IDENTITY_PEPPER: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
    },
    exit: 78,
    message: [
      'svc-server: SERVER_IDENTITY_PEPPER_MISMATCH: SERVICE_PLATFORM_IDENTITY_PEPPER is ' +
        'not the pepper that this identity database was used with, so no session, ' +
        'invitation or recovery code in it can be verified. Restore the pepper that ' +
        'belongs to this database, or correct the database URL. If it is lost, stop the ' +
        'server and run `svc-server migrate` once with ' +
        'SERVICE_PEPPER_CHANGE_CONFIRM=void-every-session-and-invitation.',
    ],
  },
  {
    situation: 'the password of the database is wrong',
    run: argv`svc-server migrate`,
    environment: {
      SERVICE_IDENTITY_DATABASE_URL_FILE: '',
      SERVICE_IDENTITY_DATABASE_URL: '{wrongPasswordUrl}',
    },
    exit: 1,
    message: [
      'svc-server: SERVER_PLATFORM_DATABASE_UNAVAILABLE: The identity database is ' +
        'unreachable, or its version or schema is not supported. (password: PostgreSQL ' +
        'rejects the user or the password; correct them in the URL (28P01)) Check that ' +
        'PostgreSQL 16 or newer runs at the configured URL and that no newer or foreign ' +
        'program owns the schema.',
    ],
  },
  {
    situation: 'the database URL has no password',
    run: argv`svc-server migrate`,
    environment: {
      SERVICE_IDENTITY_DATABASE_URL_FILE: '',
      SERVICE_IDENTITY_DATABASE_URL: '{noPasswordUrl}',
    },
    exit: 1,
    message: [
      'svc-server: SERVER_PLATFORM_DATABASE_UNAVAILABLE: The identity database is ' +
        'unreachable, or its version or schema is not supported. (password: PostgreSQL ' +
        'requires a password and the URL has none; add it) Check that PostgreSQL 16 or ' +
        'newer runs at the configured URL and that no newer or foreign program owns the ' +
        'schema.',
    ],
  },
  {
    situation: 'the database does not exist',
    run: argv`svc-server migrate`,
    environment: {
      SERVICE_IDENTITY_DATABASE_URL_FILE: '',
      SERVICE_IDENTITY_DATABASE_URL: '{unknownDatabaseUrl}',
    },
    exit: 1,
    message: [
      'svc-server: SERVER_PLATFORM_DATABASE_UNAVAILABLE: The identity database is ' +
        'unreachable, or its version or schema is not supported. (database: PostgreSQL has ' +
        'no database of this name; create it or correct the URL (3D000)) Check that ' +
        'PostgreSQL 16 or newer runs at the configured URL and that no newer or foreign ' +
        'program owns the schema.',
    ],
  },
  {
    situation: 'the host of the database is unknown',
    run: argv`svc-server migrate`,
    environment: {
      SERVICE_IDENTITY_DATABASE_URL_FILE: '',
      SERVICE_IDENTITY_DATABASE_URL: '{unknownHostUrl}',
    },
    exit: 1,
    message: [
      'svc-server: SERVER_PLATFORM_DATABASE_UNAVAILABLE: The identity database is ' +
        'unreachable, or its version or schema is not supported. (host: the host name ' +
        'cannot be resolved; correct it in the URL (ENOTFOUND)) Check that PostgreSQL 16 ' +
        'or newer runs at the configured URL and that no newer or foreign program owns the ' +
        'schema.',
    ],
  },
  {
    situation: 'PostgreSQL does not run at the port',
    run: argv`svc-server serve`,
    environment: {
      SERVICE_MANAGEMENT_LISTEN: '127.0.0.1:0',
      SERVICE_APPLICATION_LISTEN: '127.0.0.1:0',
      SERVICE_IDENTITY_DATABASE_URL_FILE: '',
      SERVICE_IDENTITY_DATABASE_URL: '{closedDatabaseUrl}',
    },
    exit: 1,
    message: [
      'svc-server: SERVER_PLATFORM_DATABASE_UNAVAILABLE: The identity database is ' +
        'unreachable, or its version or schema is not supported. (host: nothing listens at ' +
        'this host and port; start PostgreSQL or correct the URL (ECONNREFUSED)) Check ' +
        'that PostgreSQL 16 or newer runs at the configured URL and that no newer or ' +
        'foreign program owns the schema.',
    ],
  },
  {
    situation: 'PostgreSQL does not support TLS',
    run: argv`svc-server migrate`,
    environment: {
      SERVICE_IDENTITY_DATABASE_URL_FILE: '',
      SERVICE_IDENTITY_DATABASE_URL: '{encryptedUrl}',
    },
    exit: 1,
    message: [
      'svc-server: SERVER_PLATFORM_DATABASE_UNAVAILABLE: The identity database is ' +
        'unreachable, or its version or schema is not supported. (TLS: PostgreSQL does not ' +
        'support TLS; enable it there, or remove sslmode from the URL) Check that ' +
        'PostgreSQL 16 or newer runs at the configured URL and that no newer or foreign ' +
        'program owns the schema.',
    ],
  },
  {
    situation: 'the Product root is not initialized',
    run: argv`svc-server serve`,
    environment: {
      SERVICE_MANAGEMENT_LISTEN: '127.0.0.1:0',
      SERVICE_APPLICATION_LISTEN: '127.0.0.1:0',
      SERVICE_PRODUCT_ROOT: '{empty}',
    },
    exit: 1,
    message: [
      'svc-server: SERVER_PRODUCT_ROOT_INVALID: The Product root is not initialized, or ' +
        'one of its files is not valid. ({empty}/service.json: an existing file: ENOENT) ' +
        'Fix the named file, or restore the whole directory from a backup; `svc init` ' +
        'creates a new, empty root.',
    ],
  },
  {
    situation: 'another server owns the Product root',
    run: argv`svc-server serve`,
    environment: {
      SERVICE_MANAGEMENT_LISTEN: '127.0.0.1:0',
      SERVICE_APPLICATION_LISTEN: '127.0.0.1:0',
    },
    exit: 1,
    message: [
      'svc-server: SERVER_PRODUCT_ROOT_LOCKED: Another process owns this Product root. ' +
        '({root}/lock.db) Stop the other svc-server first: only one process may own a ' +
        'Product root.',
    ],
  },
  {
    situation: 'another program uses the address',
    run: argv`svc-server serve`,
    environment: {
      SERVICE_PRODUCT_ROOT: '',
      SERVICE_APPLICATION_LISTEN: '',
      SERVICE_APPLICATION_TLS_TERMINATED: '',
    },
    exit: 1,
    message: [
      'svc-server: SERVER_LISTEN_FAILED: A listener could not be opened. (management: ' +
        'Failed to start server. Is port {port} in use?) Check that nothing else uses the ' +
        'address and that this user may bind it.',
    ],
  },
]
