mod in_place;
