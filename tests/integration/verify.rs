mod record;
mod tampering;
mod upstream;
